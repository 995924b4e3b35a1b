// SPDX-License-Identifier: MIT
// A hash map in one flat array: open addressing, linear probing, erasure by shifting back (no tombstones).
// K and V are default-constructible and movable; an empty cell holds K{} and V{}. Pointers to values are valid until
// the next insertion or erasure. Iteration is in hash order, which depends only on the operations that were done.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace opline {

// Finalizer of splitmix64: every bit of the result depends on every bit of x.
inline std::uint64_t mix64(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

template <class K, class = void>
struct FlatHash {  // for every type of std::hash
    std::uint64_t operator()(const K &k) const { return mix64(std::hash<K>{}(k)); }
};
template <class K>
struct FlatHash<K, std::enable_if_t<std::is_integral_v<K> || std::is_enum_v<K>>> {
    std::uint64_t operator()(K k) const { return mix64(static_cast<std::uint64_t>(k)); }
};

template <class K, class V>
struct FlatCell {
    K key{};
    V value{};
    bool used() const { return used_; }
    void use() { used_ = true; }

  private:
    bool used_ = false;
};
// For a map without values V{}. insert() makes a V{}; the caller must replace this value at once.
template <class K, class V>
struct FlatCellByValue {
    K key{};
    V value{};
    bool used() const { return !(value == V{}); }
    void use() {}
};

template <class K, class V, class Hash = FlatHash<K>, class Cell = FlatCell<K, V>>
class FlatMap {
    using Cells = std::vector<Cell>;

  public:
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    // nullptr: not there.
    V *find(const K &key) {
        if (size_ == 0) return nullptr;
        std::size_t i = seek(key);
        return cells_[i].used() ? &cells_[i].value : nullptr;
    }
    const V *find(const K &key) const { return const_cast<FlatMap *>(this)->find(key); }
    bool contains(const K &key) const { return find(key) != nullptr; }

    // The value of the key; V{} for a new key. second: the key is new.
    std::pair<V *, bool> insert(const K &key) {
        if (mask_ == 0) grow(16);
        std::size_t i = seek(key);
        if (cells_[i].used()) return {&cells_[i].value, false};  // a known key moves nothing
        if (crowded(size_, mask_)) {
            grow(cells_.size() * 2);
            i = seek(key);
        }
        cells_[i].key = key;
        cells_[i].use();
        ++size_;
        return {&cells_[i].value, true};
    }
    V &operator[](const K &key) { return *insert(key).first; }
    void put(const K &key, V value) { *insert(key).first = std::move(value); }

    bool erase(const K &key) {
        if (size_ == 0) return false;
        std::size_t i = seek(key);
        if (!cells_[i].used()) return false;
        erase_cell(i);
        return true;
    }
    // Erases by a value from find() or insert(), while still valid.
    void erase_found(V *value) {
        const auto bytes = reinterpret_cast<const char *>(value) - reinterpret_cast<const char *>(cells_.data());
        erase_cell(static_cast<std::size_t>(bytes) / sizeof(Cell));
    }
    template <class Predicate>  // bool(const K &, V &)
    std::size_t erase_if(Predicate predicate) {
        std::vector<K> doomed;
        for (auto &c : cells_)
            if (c.used() && predicate(static_cast<const K &>(c.key), c.value)) doomed.push_back(c.key);
        for (const auto &k : doomed) erase(k);
        return doomed.size();
    }
    template <class Function>  // void(const K &, V &); must not insert or erase
    void for_each(Function function) {
        for (auto &c : cells_)
            if (c.used()) function(static_cast<const K &>(c.key), c.value);
    }
    template <class Function>  // void(const K &, const V &)
    void for_each(Function function) const {
        for (const auto &c : cells_)
            if (c.used()) function(c.key, c.value);
    }

    void clear() {
        cells_.clear();
        size_ = mask_ = 0;
    }
    void reserve(std::size_t n) {
        std::size_t want = 16;
        while (crowded(n, want)) want *= 2;
        if (want > cells_.size()) grow(want);
    }

  private:
    // So many keys are too many for so many cells: more than half.
    static bool crowded(std::size_t keys, std::size_t cells) { return keys * 2 > cells; }
    std::size_t home(const K &key) const { return static_cast<std::size_t>(Hash{}(key)) & mask_; }
    // The cell of the key, or the empty cell for the key.
    std::size_t seek(const K &key) const {
        std::size_t i = home(key);
        while (cells_[i].used() && !(cells_[i].key == key)) i = (i + 1) & mask_;
        return i;
    }
    void erase_cell(std::size_t hole) {
        for (std::size_t i = (hole + 1) & mask_; cells_[i].used(); i = (i + 1) & mask_) {
            // Cell i may fill the hole if the cell's home is outside of the cyclic range (hole, i].
            if (((i - home(cells_[i].key)) & mask_) < ((i - hole) & mask_)) continue;
            cells_[hole].key = std::move(cells_[i].key);
            cells_[hole].value = std::move(cells_[i].value);
            hole = i;
        }
        Cell *const cell = &cells_[hole];
        cell->~Cell();
        new (cell) Cell{};
        --size_;
    }
    void grow(std::size_t n) {
        Cells old(n);
        old.swap(cells_);
        mask_ = n - 1;
        for (auto &c : old) {
            if (!c.used()) continue;
            Cell &to = cells_[seek(c.key)];
            to.key = std::move(c.key);
            to.value = std::move(c.value);
            to.use();
        }
    }

    Cells cells_;
    std::size_t size_ = 0, mask_ = 0;  // mask_: the number of cells, less 1; 0: there are none
};

}  // namespace opline
