# Toolchain of preset release-arm64: Debian's cross compiler on an amd64 machine, and the libraries that deploy/arm64-sysroot unpacks.
# Programs that run during the build (protoc, grpc_cpp_plugin) are this machine's own.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-arm64)
cmake_path(NORMAL_PATH CMAKE_SYSROOT)
# glibc's static library for arm64 reaches only the first 32 KiB of the GOT, which GNU ld fills and then gives up. mold replaces loads from the GOT by
# addresses where it can, and links (docs/decisions/0021-arm64-and-packages.md).
set(CMAKE_EXE_LINKER_FLAGS_INIT -B/usr/libexec/mold)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# For pkg-config, which MusterTargets.cmake runs too.
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_PATH} "")
