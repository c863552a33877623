# CPack runs this before it packs: changes the files to the layout and form that Debian requires.

file(GLOB stages ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(stage IN LISTS stages)
  # CMake installs it below the prefix, which is /usr in a package.
  if(EXISTS ${stage}/usr/etc)
    file(RENAME ${stage}/usr/etc ${stage}/etc)
  endif()
  file(GLOB manuals ${stage}/usr/share/man/man*/*.[1-8])
  foreach(manual IN LISTS manuals)
    execute_process(COMMAND gzip -9n ${manual} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
