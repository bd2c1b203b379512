# The installed name of the client: a plain word that is nobody else's.
function(perfd_check_cli_name name)
  if(NOT name MATCHES "^[A-Za-z0-9][A-Za-z0-9._-]*$")
    message(FATAL_ERROR "PERFD_CLI_NAME '${name}' is not a plain word")
  endif()
  if(name MATCHES "^(perfd|perf-agent|perf-agent-reader|perf-agent-tracer|perf)$")
    message(FATAL_ERROR "PERFD_CLI_NAME '${name}' is the name of another program")
  endif()
endfunction()
