// SPDX-License-Identifier: MIT
#include "transitions.hpp"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opline {
namespace {

// What lies between so many times and the ones behind each.
void steps_of(const std::int64_t *times, std::size_t count, std::uint32_t *steps) {
    std::size_t i = 0;
#ifdef __SSE2__
    auto two = [](const std::int64_t *t) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(t)); };
    auto between = [two](const std::int64_t *t) { return _mm_castsi128_ps(_mm_sub_epi64(two(t + 1), two(t))); };
    for (; i + 4 <= count; i += 4) _mm_storeu_ps(reinterpret_cast<float *>(steps + i), _mm_shuffle_ps(between(times + i), between(times + i + 2), _MM_SHUFFLE(2, 0, 2, 0)));
#endif
    for (; i < count; ++i) steps[i] = static_cast<std::uint32_t>(times[i + 1] - times[i]);
}

}  // namespace

std::uint32_t Shapes::find(std::uint32_t from, const TransitionKind &kind, std::uint32_t thread) {
    const std::uint64_t hash = mix64(kind.hash() ^ (static_cast<std::uint64_t>(from) << 8 | thread));
    if (const std::uint32_t *known = children_.find(hash)) {
        const Node &n = nodes_[*known];
        if (n.parent != from || n.thread != thread || !(n.kind == kind)) return 0;  // another's hash
        nodes_[from].last_child = *known;
        return *known;
    }
    if (full_ || nodes_.size() == kMaxNodes) return 0;
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({kind, thread, from, 0});
    nodes_[from].last_child = added;
    children_.put(hash, added);
    return added;
}

void TransitionList::copy_to(std::vector<Transition> &out) const {
    out.resize(depth_at(place_));
    std::uint32_t node = node_at(place_);
    for (std::size_t i = out.size(); i-- > 0;) {
        const Shapes::Node &n = shapes_->node(node);
        Transition &t = out[i];
        static_cast<TransitionKind &>(t) = n.kind;
        t.ts_ns = times_[i];
        t.tid = ids_[n.thread].tid;
        t.pid = ids_[n.thread].pid;
        t.cpu = cpu(i);
        t.comm = comm(i);
        t.order = static_cast<std::uint32_t>(i);
        node = n.parent;
    }
}

void TransitionList::freeze(unsigned char *to) {
    const auto all_ns = static_cast<std::uint32_t>(last_ns() - times_.front());
    new (to) Frozen{place_, first_comm_, threads_, all_ns, times_.front()};
    to += sizeof(Frozen);
    for (std::uint32_t i = 0; i < threads_; ++i, to += sizeof(Thread)) new (to) Thread(ids_[i]);
    steps_of(times_.data(), size() - 1, reinterpret_cast<std::uint32_t *>(to));
    place_ = 0;
    threads_ = 0;
}

void TransitionList::thaw(const unsigned char *from) {
    Frozen head;
    std::memcpy(&head, from, sizeof head);
    from += sizeof head;
    place_ = head.place;
    threads_ = static_cast<std::uint8_t>(head.threads);
    first_comm_ = head.comm;
    std::memcpy(ids_.data(), from, threads_ * sizeof ids_[0]);
    const auto *step = reinterpret_cast<const std::uint32_t *>(from + threads_ * sizeof ids_[0]);
    if (size() > room_) make_room(size());
    times_[0] = head.first_ns;
    for (std::size_t i = 1; i < size(); ++i) times_[i] = times_[i - 1] + *step++;
}

void TransitionList::make_room(std::size_t size) {
    times_.resize(std::max({size, 2 * times_.size(), std::size_t{16}}));
    room_ = static_cast<std::uint32_t>(times_.size());
}

}  // namespace opline
