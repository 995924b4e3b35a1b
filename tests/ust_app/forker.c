/* SPDX-License-Identifier: MIT
 * Loads a module that keeps its names to itself (RTLD_LOCAL), and lets it emit 100 events; so does a child that it
 * forks, without exec.
 *   usage: forker MODULE (ticker.c as a shared library, its main called tick)
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*tick)(int, char **) = module ? (int (*)(int, char **))dlsym(module, "tick") : NULL;
    char *words[] = {argv[0], "100", NULL};
    int status = 1;
    if (!tick || tick(2, words) != 0) return 1;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) return tick(2, words);
    return waitpid(child, &status, 0) != child || status != 0;
}
