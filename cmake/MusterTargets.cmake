# One target a folder. muster_library(NAME DEPS ...) takes every .cc of the calling folder but main.cc;
# muster_binary(NAME [LINK -static] DEPS ...) is that folder's main.cc, a program that is delivered. tests/tidy checks that includes follow the DEPS.
# A large target may have rooms: ROOMS FOLDER or "FOLDER: OTHER...", where the files of a subfolder may include those of the rooms named behind the
# colon. The target's own folder may include all of them, and they include nothing of it. They share one target, so that they share a PCH and unity files.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
  # Unity files include by absolute path, and an assert holds __FILE__: without this another clone shares nothing of the cache.
  add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()

add_library(muster_warnings INTERFACE)
target_compile_options(muster_warnings INTERFACE -Wall -Wextra -Wpedantic -Werror -Wswitch-enum -Wshadow=local -Wnon-virtual-dtor -Wold-style-cast -Wno-missing-field-initializers)
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  if(MUSTER_SANITIZE MATCHES thread)
    # Protobuf's and Abseil's headers lay some classes out differently when they see it; the packaged libraries were compiled without.
    add_compile_options(-U__SANITIZE_THREAD__)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/tsan.supp)
    file(READ ${CMAKE_SOURCE_DIR}/tests/support/tsan.supp MUSTER_TSAN_SUPPRESSIONS)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/tsan_defaults.cc.in ${CMAKE_BINARY_DIR}/tsan_defaults.cc @ONLY)
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)  # a fence is what ThreadSanitizer cannot follow; Asio's own locks order the same
  endif()
  # GCC 12 reports false maybe-uninitialized and the like under sanitizers.
  target_compile_options(muster_warnings INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict)
else()
  # GCC 12: false alarms in std::string and std::optional
  target_compile_options(muster_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
add_compile_options($<$<CONFIG:Release>:-fno-plt>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  add_compile_options(-fsigned-char)  # as on amd64, where the tests run: one meaning of `char` for every comparison and every shift
endif()

# Libraries of Debian's: shared, or (release) their .a files by path, so that everything can be static.
# muster_archives(OUT NAME...): the .a paths, in the order given.
function(muster_archives out)
  set(paths "")
  foreach(name ${ARGN})
    find_library(ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
    mark_as_advanced(ARCHIVE_${name})
    list(APPEND paths ${ARCHIVE_${name}})
  endforeach()
  set(${out} ${paths} PARENT_SCOPE)
endfunction()

# muster_static_lib(TARGET NAME...)
function(muster_static_lib target)
  add_library(${target} INTERFACE)
  if(MUSTER_STATIC)
    muster_archives(archives ${ARGN})
    target_link_libraries(${target} INTERFACE ${archives})
  else()
    target_link_libraries(${target} INTERFACE ${ARGN})
  endif()
endfunction()

# Everything gRPC. -lsystemd is not needed by what is used and has no .a; the packaged archives need each other: one group.
add_library(muster_grpc INTERFACE)
if(MUSTER_STATIC)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --libs-only-l --static grpc++ protobuf OUTPUT_VARIABLE grpc_libs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "-l[^ ]+" grpc_libs "${grpc_libs}")
  list(TRANSFORM grpc_libs REPLACE "^-l" "")
  list(REMOVE_ITEM grpc_libs systemd pthread dl m rt atomic)
  list(REMOVE_DUPLICATES grpc_libs)
  muster_archives(grpc_archives ${grpc_libs})
  list(JOIN grpc_archives "," grpc_archives)
  target_link_libraries(muster_grpc INTERFACE "$<LINK_GROUP:RESCAN,${grpc_archives}>" Threads::Threads dl m)
else()
  pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++ protobuf)
  target_link_libraries(muster_grpc INTERFACE PkgConfig::GRPC Threads::Threads)
endif()

muster_static_lib(muster_yaml yaml-cpp)
# Debian ships fmt and spdlog without .a files: where everything is static, fmt is compiled here and spdlog is header-only.
add_library(muster_spdlog INTERFACE)
if(MUSTER_STATIC)
  add_library(muster_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt.cc)
  target_compile_definitions(muster_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
else()
  add_library(muster_fmt INTERFACE)
  target_link_libraries(muster_fmt INTERFACE fmt)
  target_compile_definitions(muster_spdlog INTERFACE SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
  target_link_libraries(muster_spdlog INTERFACE spdlog)
endif()
target_link_libraries(muster_spdlog INTERFACE muster_fmt)
muster_static_lib(muster_sqlite sqlite3)
muster_static_lib(muster_zlib z)
muster_static_lib(muster_crypto crypto)
muster_static_lib(muster_ssl ssl crypto)
muster_static_lib(muster_re2 re2)
# Debian builds libssh2 with OpenSSL's libcrypto.
muster_static_lib(muster_libssh2 ssh2 crypto z)

# Ten files of a target are compiled as one: most of a file's time goes to the headers that it shares with its neighbours. Those named have something of a
# neighbour's name and are compiled alone. Preset dev compiles every file alone: quicker after a change, and it shows a missing include.
function(muster_unity target)
  if(MUSTER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

function(muster_library name)
  cmake_parse_arguments(arg "" "" "DEPS;PCH;ALONE;ROOMS" ${ARGN})
  list(TRANSFORM arg_ROOMS REPLACE ":.*" "/*.cc" OUTPUT_VARIABLE rooms)
  list(TRANSFORM rooms REPLACE "^([^/]+)$" "\\1/*.cc")
  list(TRANSFORM rooms PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${rooms})
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${name} PRIVATE muster_warnings)
    muster_unity(${name} ${arg_ALONE})
    if(arg_PCH)
      target_precompile_headers(${name} PRIVATE ${arg_PCH})
    endif()
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} ${scope} ${arg_DEPS})
endfunction()

# For every program of the tsan preset that uses gRPC: the options and suppressions that ThreadSanitizer needs, built in.
function(muster_tsan_defaults program)
  if(MUSTER_SANITIZE MATCHES thread)
    target_sources(${program} PRIVATE ${CMAKE_BINARY_DIR}/tsan_defaults.cc)
  endif()
endfunction()

function(muster_binary name)
  cmake_parse_arguments(arg "" "LINK" "DEPS" ${ARGN})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/main.cc)
    add_executable(${name} main.cc)
    muster_tsan_defaults(${name})
    target_link_libraries(${name} PRIVATE ${arg_DEPS} muster_warnings)
    # With the C library, too: hosts have older ones (docs/decisions/0017). Tests and benchmarks run where they are built, and stay dynamic.
    # -static-pie and -static-libstdc++ exclude each other: g++ would put -Bdynamic behind libstdc++, and libc would be found as a shared one.
    if(MUSTER_STATIC)
      if(NOT arg_LINK)
        set(arg_LINK -static-pie)
      endif()
      target_link_options(${name} PRIVATE ${arg_LINK})
      # The libraries' own -Bstatic .. -Bdynamic pairs would leave libc to be found as a shared one.
      set_target_properties(${name} PROPERTIES LINK_SEARCH_END_STATIC ON)
    endif()
  endif()
endfunction()

set(MUSTER_GRPC_PCH <grpcpp/grpcpp.h> <string> <vector> <map> <memory> <optional> <variant> <functional> <chrono>)
