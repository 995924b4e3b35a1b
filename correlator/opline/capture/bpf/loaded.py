# SPDX-License-Identifier: MIT
"""An image's maps and programs in the kernel. All goes with the process, however it ends."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from opline.capture.bpf import kernel
from opline.capture.bpf.image import Image, MapOf, c_type, with_maps


class Map:
    """A map that is not per CPU; values are ctypes of ``value``. All raise OSError."""

    def __init__(self, of: MapOf) -> None:
        self._of = of
        self.descriptor: int = kernel.make_map(of.kind, of.key_bytes, of.value_bytes, of.entries, of.flags, of.name)

    @property
    def value(self) -> Any:
        """The type of values."""
        return c_type(json.loads(self._of.value))

    def set(self, key: ctypes.Structure | ctypes._SimpleCData[Any], value: Any) -> None:
        """Gives a key this value."""
        kernel.update(self.descriptor, bytes(key), bytes(value))

    def remove(self, key: ctypes._SimpleCData[Any]) -> None:
        """Takes a key out."""
        kernel.delete(self.descriptor, bytes(key))

    def get(self, key: ctypes._SimpleCData[Any]) -> Any:
        """The value of a key; None: the map has no such key."""
        try:
            return self.value.from_buffer_copy(kernel.look_up(self.descriptor, bytes(key), self._of.value_bytes))
        except FileNotFoundError:
            return None

    def take(self) -> Any:
        """The oldest value of a queue, which is taken out of it; None: it is empty."""
        found = kernel.take(self.descriptor, self._of.value_bytes)
        return None if found is None else self.value.from_buffer_copy(found)

    def values(self) -> Iterator[Any]:
        """All values at the moment."""
        of, value = self._of, self.value
        key = kernel.next_key(self.descriptor, None, of.key_bytes)
        while key is not None:
            with suppress(FileNotFoundError):  # gone in between
                yield value.from_buffer_copy(kernel.look_up(self.descriptor, key, of.value_bytes))
            key = kernel.next_key(self.descriptor, key, of.key_bytes)


class Loaded:
    """The maps of an image, made; its programs, as they are asked for. All raise OSError."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.maps: dict[str, Map] = {}
        self._programs: dict[str, int] = {}
        self._links: list[int] = []
        try:
            for of in image.maps:
                self.maps[of.name] = Map(of)
        except OSError:
            self.close()
            raise
        self._descriptors = dict(enumerate(made.descriptor for made in self.maps.values()))

    def load(self, name: str, kind: int = kernel.RAW_TRACEPOINT, wanted_for: int = 0, attached_to: int = 0) -> int:
        """The descriptor of a program, which the kernel verifies once (kernel.load)."""
        if name not in self._programs:
            code = with_maps(self._image.programs[name], self._descriptors)
            self._programs[name] = kernel.load(kind, code, name, wanted_for, attached_to)
        return self._programs[name]

    def attach(self, program: str, tracepoint: str | None) -> None:
        """Attaches a loaded program to a raw tracepoint, or to what it was loaded for."""
        self._links.append(kernel.open_raw_tracepoint(self._programs[program], tracepoint))

    def detach(self) -> None:
        """No program runs any more at a tracepoint."""
        for descriptor in self._links:
            os.close(descriptor)
        self._links = []

    def close(self) -> None:
        """Let go of everything."""
        self.detach()
        for descriptor in (*self._programs.values(), *(made.descriptor for made in self.maps.values())):
            os.close(descriptor)
        self._programs, self.maps = {}, {}
