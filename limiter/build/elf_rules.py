"""What the compiled files may export and need."""

from pathlib import Path

from limiter.build import elf, function_list
from limiter.build.toolchain import GLIBC

# Exports that are not NVIDIA's: functions of the loader and of AddressSanitizer, and what the library's copies call.
_REPLACED = {"dlsym", "dlvsym", "dlopen", "dlmopen", "vgpu_bind_namespace", "vgpu_substitute", "__asan_default_options"}
_NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0"}  # names that musl has too; not glibc's loader

# Cancellation points: functions of the C library in which a cancelled thread ends (common/nocancel.h). And functions
# that wait by the wall clock, which may be set back.
_NOT_CALLED = {
    *("accept", "accept4", "clock_nanosleep", "close", "connect", "creat", "epoll_pwait", "epoll_wait", "fdatasync"),
    *("fsync", "msync", "nanosleep", "open", "open64", "openat", "openat64", "pause", "poll", "ppoll", "pread"),
    *("pread64", "preadv", "pselect", "pthread_join", "pthread_testcancel", "pwrite", "pwrite64", "read", "readv"),
    *("recv", "recvfrom", "recvmsg", "select", "send", "sendmsg", "sendto", "sleep", "system", "tcdrain", "usleep"),
    *("wait", "wait4", "waitid", "waitpid", "write", "writev"),
    *("pthread_cond_timedwait", "pthread_cond_wait", "pthread_mutex_timedlock", "pthread_rwlock_timedrdlock"),
    *("pthread_rwlock_timedwrlock", "sem_timedwait", "sem_wait"),
}


def check_library(library: Path) -> None:
    """Exit unless the library exports exactly what it replaces, and needs the C library only, in an old version."""
    seen = elf.read(library.read_bytes())
    if differing := seen.exports ^ (function_list.hooked() | _REPLACED):
        raise SystemExit(f"{library.name}: exports differ from functions.h: {sorted(differing)}")
    check_calls(library)
    check_program(library)


def check_calls(library: Path) -> None:
    """Exit where the library calls a cancellation point, or a function that waits by the wall clock."""
    if called := elf.read(library.read_bytes()).imports & _NOT_CALLED:
        raise SystemExit(f"{library.name}: calls {sorted(called)}; call the function in common/nocancel.h instead")


def check_program(program: Path) -> None:
    """Exit unless a file needs the C library only, in an old version, and has no debug information (build paths)."""
    data = program.read_bytes()
    seen = elf.read(data)
    if b".debug_" in data:
        raise SystemExit(f"{program.name}: has debug information")
    if strange := seen.needed - _NEEDED:
        raise SystemExit(f"{program.name}: needs {sorted(strange)}")
    if newer := [version for version in seen.glibc if version > GLIBC]:
        raise SystemExit(f"{program.name}: needs glibc {newer}")
