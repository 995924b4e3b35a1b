// SPDX-License-Identifier: MIT
// The handler may interrupt any code: it calls only what signal-safety(7) allows, and mmap, which is one system call.
#include "base/lost_pages.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace opline {
namespace {

constexpr std::size_t kLine = PATH_MAX + 128;  // of /proc/PID/maps: addresses and numbers, then a path
enum State { kNone, kWriting, kThere };

std::atomic<int> state{kNone};
char path[PATH_MAX + 16];  // with " (deleted)"
struct sigaction before;
std::uintptr_t page_size;

std::uintptr_t hex(const char *&at, const char *end) {
    std::uintptr_t value = 0;
    for (; at != end; ++at) {
        const char c = *at;
        if (c >= '0' && c <= '9') value = value << 4 | static_cast<std::uintptr_t>(c - '0');
        else if (c >= 'a' && c <= 'f') value = value << 4 | static_cast<std::uintptr_t>(c - 'a' + 10);
        else break;
    }
    return value;
}

// Whether the line's mapping has the address.
bool has(std::string_view line, std::uintptr_t address) {
    const char *at = line.data(), *end = at + line.size();
    const std::uintptr_t first = hex(at, end);
    if (at != end) ++at;
    return first <= address && address < hex(at, end);
}

// The path in the line of a file mapped read-only, else empty: "7f00-7f10 r--p 0 08:01 12   /path".
std::string_view file_of(std::string_view line) {
    const std::size_t rights = line.find(' '), name = line.find('/');
    if (name == std::string_view::npos || line.substr(rights + 1, 3) != "r--") return {};
    return line.substr(name);
}

void keep(std::string_view name) {
    int none = kNone;
    if (!state.compare_exchange_strong(none, kWriting)) return;
    const std::size_t size = name.size() < sizeof path - 1 ? name.size() : sizeof path - 1;
    std::memcpy(path, name.data(), size);
    state.store(kThere, std::memory_order_release);
}

// Looks up the address in /proc/self/maps; true if a page of zeros has replaced the page.
bool replaced(std::uintptr_t address) {
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char buffer[2 * kLine];
    std::size_t held = 0;
    bool done = false, found = false;
    while (!done) {
        const ssize_t more = ::read(fd, buffer + held, sizeof buffer - held);
        if (more <= 0) break;
        held += static_cast<std::size_t>(more);
        std::string_view rest(buffer, held);
        for (std::size_t end; !done && (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
            const std::string_view line = rest.substr(0, end);
            if (!has(line, address)) continue;
            done = true;
            const std::string_view name = file_of(line);
            if (name.empty()) continue;
            void *page = reinterpret_cast<void *>(address & ~(page_size - 1));
            constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
            found = ::mmap(page, page_size, PROT_READ, flags, -1, 0) != MAP_FAILED;
            if (found) keep(name);
        }
        held = rest.size();
        std::memmove(buffer, rest.data(), held);
    }
    ::close(fd);
    return found;
}

void on_bus_error(int, siginfo_t *about, void *) {
    const int kept = errno;
    const bool ours = about->si_code == BUS_ADRERR && replaced(reinterpret_cast<std::uintptr_t>(about->si_addr));
    if (!ours) ::sigaction(SIGBUS, &before, nullptr);  // the instruction runs again, with the earlier handler
    errno = kept;
}

}  // namespace

void outlive_lost_pages() {
    struct sigaction now;
    if (::sigaction(SIGBUS, nullptr, &now) != 0 || now.sa_sigaction == on_bus_error) return;
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    before = now;
    struct sigaction ours = {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &ours, nullptr);
}

void keep_if_shorter(const std::string &name, std::uint64_t bytes) {
    struct stat now;
    if (::stat(name.c_str(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) < bytes) keep(name);
}

std::string take_file_with_lost_pages() {
    if (state.load(std::memory_order_acquire) != kThere) return {};
    std::string_view name(path);
    constexpr std::string_view kDeleted = " (deleted)";
    if (name.size() > kDeleted.size() && name.substr(name.size() - kDeleted.size()) == kDeleted)
        name.remove_suffix(kDeleted.size());
    std::string found(name);
    state.store(kNone, std::memory_order_release);
    return found;
}

}  // namespace opline
