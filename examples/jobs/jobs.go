// SPDX-License-Identifier: MIT
package main

import (
	"os"
	"strconv"
)

var sum int

//go:noinline
func jobQueue(id int) { sum += id }

//go:noinline
func jobWrite(id int, file *os.File) {
	file.WriteAt(make([]byte, 4096), 0)
	file.Sync()
}

//go:noinline
func jobDone(id int) { sum -= id }

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	file, _ := os.OpenFile(os.Args[2], os.O_RDWR|os.O_CREATE, 0600)
	jobs, done := make(chan int, 1), make(chan int, 1)
	go func() {
		for id := range jobs {
			jobWrite(id, file)
			jobDone(id)
			done <- id
		}
	}()
	for id := 1; id <= count; id++ {
		jobQueue(id)
		jobs <- id
		<-done
	}
}
