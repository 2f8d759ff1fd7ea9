# What `cmake --install` and CPack put where: the four programs, units, settings, completion, pages for the operator. deploy/build-release runs it.
# Below a prefix that ends with /usr (the .deb), settings go to /etc next to it; below any other one (the tarball) to its own etc.
set(package ${CMAKE_SOURCE_DIR}/deploy/package)
install(TARGETS muster muster-controller muster-agent muster-worker RUNTIME DESTINATION bin)
install(FILES ${package}/muster-controller.service ${package}/muster-agent.service DESTINATION lib/systemd/system)
install(FILES ${package}/sysusers.conf DESTINATION lib/sysusers.d RENAME muster.conf)
install(FILES ${package}/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME muster.conf)
install(FILES ${package}/completion.bash DESTINATION share/bash-completion/completions RENAME muster)
install(FILES ${package}/completion.zsh DESTINATION share/zsh/vendor-completions RENAME _muster)
install(FILES ${CMAKE_SOURCE_DIR}/docs/operations/install.md ${CMAKE_SOURCE_DIR}/docs/operations/first-cluster.md DESTINATION share/doc/muster)
install(CODE "set(settings \"${package}/controller.yaml;${package}/agent.yaml\")")
install(CODE [[
  set(etc "${CMAKE_INSTALL_PREFIX}/etc")
  if(CMAKE_INSTALL_PREFIX MATCHES "^(.*)/usr$")
    set(etc "${CMAKE_MATCH_1}/etc")
  endif()
  file(INSTALL DESTINATION "${etc}/muster" TYPE FILE FILES ${settings})
]])

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(arch arm64)
else()
  set(arch amd64)
endif()
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME muster-${PROJECT_VERSION}-${arch})
set(CPACK_PACKAGE_CONTACT "muster <root@localhost>")
set(CPACK_PACKAGE_VENDOR muster)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${arch})
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
# The programs are static and need no package. What a job needs (python3, podman, git) is the job's own.
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "launches large-model training on the nodes of a cluster and keeps it alive
A controller, an agent for each node, and a client. After any failure a job
goes on from its last whole checkpoint. No daemon is started by the
installation: /usr/share/doc/muster/install.md says how.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${package}/postinst ${package}/prerm ${package}/postrm ${package}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
include(CPack)
