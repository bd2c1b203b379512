# cmake --install DIR [--prefix P]: programs, units, dashboards, examples. Nothing else writes outside the build folder.
# What names the prefix or the client is made at install time, so that both may be chosen then: the client's name also by
# the environment (PERFD_CLI_NAME=lightprof cmake --install DIR), for those who package a build that was made before.
include(GNUInstallDirs)
set(PERFD_CLI_NAME perfctl CACHE STRING "installed name of the client; docs/security.md says why a site may want another")
include(cmake/check_cli_name.cmake)
perfd_check_cli_name("${PERFD_CLI_NAME}")
if(NOT PERFD_SERVICES)
  return()
endif()

set(perfd_programs perfd perf-agent perf-agent-reader perf-agent-tracer)
install(TARGETS ${perfd_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY deploy/observability deploy/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/perfd USE_SOURCE_PERMISSIONS)
install(FILES deploy/config/perfd.yaml deploy/config/agent.yaml deploy/config/perfd.logrotate
  DESTINATION ${CMAKE_INSTALL_DATADIR}/perfd/config)
install(PROGRAMS deploy/make-certs.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/perfd)
# Of the schedulers: what a site copies, not what is compiled.
foreach(folder slurm hooks)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/${folder})
    install(DIRECTORY deploy/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/perfd USE_SOURCE_PERMISSIONS
      PATTERN CMakeLists.txt EXCLUDE PATTERN "*.c" EXCLUDE PATTERN "*.cc" EXCLUDE PATTERN "*.h" EXCLUDE)
  endif()
endforeach()
install(FILES deploy/systemd/perfd.sysusers DESTINATION lib/sysusers.d RENAME perfd.conf)
install(FILES deploy/systemd/perfd.tmpfiles DESTINATION lib/tmpfiles.d RENAME perfd.conf)
install(CODE "
  set(PERFD_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(PERFD_BIN_FOLDER \"${CMAKE_INSTALL_BINDIR}\")
  set(PERFD_DATA_FOLDER \"${CMAKE_INSTALL_DATADIR}\")
  set(PERFD_CLI_NAME \"${PERFD_CLI_NAME}\")
  set(PERFD_CLI_BUILT \"$<TARGET_FILE:perfctl>\")
  set(PERFD_PROGRAMS \"${perfd_programs}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_named.cmake\")")
