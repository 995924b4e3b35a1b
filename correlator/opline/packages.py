# SPDX-License-Identifier: MIT
"""What installs a package here: the command and the package's name of Debian, Ubuntu and Fedora."""

from __future__ import annotations

import functools
import platform

#: Names in Fedora where they are not Debian's, which are Ubuntu's, too. None: Fedora has no such package.
_FEDORA: dict[str, str | None] = {
    "liblttng-ust1": "lttng-ust",
    "lttng-modules-dkms": None,
    "python3-bpfcc": "python3-bcc",
}


@functools.cache
def _relatives() -> frozenset[str]:
    """This distribution and those that it is made of, as /etc/os-release names them; empty if it does not say."""
    try:
        said = platform.freedesktop_os_release()
    except OSError:
        return frozenset()
    return frozenset((said["ID"], *said.get("ID_LIKE", "").split()))


def how_to_install(package: str) -> str:
    """What installs ``package``, by Debian's name of it."""
    if _relatives() & {"fedora", "rhel"}:
        name = _FEDORA.get(package, package)
        return f"dnf install {name}" if name else f"build {package.removesuffix('-dkms')} for this kernel: no package"
    if not _relatives() or _relatives() & {"debian", "ubuntu"}:
        return f"apt install {package}"
    return f"install {package} (Debian's name of the package)"
