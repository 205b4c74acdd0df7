# What every target of this project has in common. Nothing here reaches those who link to one.
include_guard(GLOBAL)
include(GNUInstallDirs)

option(HOLDFAST_WERROR "Make warnings errors" OFF)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

function(holdfast_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Less looking for memory to reuse, in KiB: a fifth of the time of a build.
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=1000000)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Its optimiser finds fault with std::string and std::optional where there is none; the sanitizers look instead.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                             -Wno-stringop-overread -Wno-maybe-uninitialized)
  endif()
  if(HOLDFAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
endfunction()

# A static library from the folder's src/*.cpp less EXCEPT, with the folder's include/ public, known as holdfast::NAME.
function(holdfast_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  set(target holdfast_${name})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp")
  foreach(file IN LISTS arg_EXCEPT)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/src/${file}")
  endforeach()
  add_library(${target} STATIC ${sources})
  add_library(holdfast::${name} ALIAS ${target})
  holdfast_configure_target(${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# Installs holdfast_NAME, its headers, and the target file that holdfast-config.cmake reads.
function(holdfast_install_library name)
  set(cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
  install(TARGETS holdfast_${name} EXPORT holdfast-${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT holdfast-${name} FILE holdfast-${name}.cmake NAMESPACE holdfast:: DESTINATION ${cmake_dir})
endfunction()
