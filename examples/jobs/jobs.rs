// SPDX-License-Identifier: MIT
use std::{fs::OpenOptions, os::unix::fs::FileExt, ptr::addr_of_mut, ptr::write_volatile, sync::mpsc::sync_channel};

static mut LAST: u64 = 0;

#[no_mangle]
#[inline(never)]
pub extern "C" fn job_queue(id: u64) {
    unsafe { write_volatile(addr_of_mut!(LAST), id) }
}

#[inline(never)]
fn job_write(id: u64, file: &std::fs::File) {
    file.write_at(&[0u8; 4096], 0).unwrap();
    file.sync_data().unwrap();
    unsafe { write_volatile(addr_of_mut!(LAST), id) }
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn job_done(id: u64) {
    unsafe { write_volatile(addr_of_mut!(LAST), id + 1) }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let file = OpenOptions::new().write(true).create(true).open(&words[2]).unwrap();
    let (queue, jobs) = sync_channel::<u64>(1);
    let (finished, done) = sync_channel::<u64>(1);
    let worker = std::thread::spawn(move || {
        for id in jobs {
            job_write(id, &file);
            job_done(id);
            finished.send(id).unwrap();
        }
    });
    for id in 1..=words[1].parse().unwrap() {
        job_queue(id);
        queue.send(id).unwrap();
        done.recv().unwrap();
    }
    drop(queue);
    worker.join().unwrap();
}
