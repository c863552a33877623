# Run by CPack on what it is about to pack: brings it into the form that Debian wants.

file(GLOB stages ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(stage IN LISTS stages)
  # Below /usr it is found by whoever installs with a prefix of his own.
  if(EXISTS ${stage}/usr/etc)
    file(RENAME ${stage}/usr/etc ${stage}/etc)
  endif()
  file(GLOB manuals ${stage}/usr/share/man/man*/*.[1-8])
  foreach(manual IN LISTS manuals)
    execute_process(COMMAND gzip -9n ${manual} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
