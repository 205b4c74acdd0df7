/* A library from outside that is another one with something wrong: HOLDFAST_STRANGE_OVER names that one's file,
 * HOLDFAST_STRANGE what is wrong. In C, as a stranger's may be. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/real_device/holdfast_plugin.h"

static holdfast_plugin_api table;
static holdfast_inside inside;
static holdfast_environment environment;
static const holdfast_plugin_api* sound;

static int is(const char* what) {
  const char* how = getenv("HOLDFAST_STRANGE");
  return how != NULL && strcmp(how, what) == 0;
}

static int32_t refuse_to_open(const holdfast_host* host, const holdfast_config* config, holdfast_owner** owner,
                              holdfast_error* error) {
  (void)host, (void)config, (void)owner;
  strcpy(error->detail, "no such cluster");
  return 2001;
}

static int32_t crash_at_a_put(holdfast_owner* owner, const holdfast_keys* keys, uint64_t value_len,
                              const holdfast_put_options* options, uint64_t* plan_ptr, holdfast_error* error) {
  (void)owner, (void)keys, (void)value_len, (void)options, (void)plan_ptr, (void)error;
  abort();
}

static int32_t hang_at_a_put(holdfast_owner* owner, const holdfast_keys* keys, uint64_t value_len,
                             const holdfast_put_options* options, uint64_t* plan_ptr, holdfast_error* error) {
  (void)owner, (void)keys, (void)value_len, (void)options, (void)plan_ptr, (void)error;
  for (;;) pause();
}

/* The first two values of a read plan change places. */
static int32_t swap_values(holdfast_owner* owner, uint64_t handle, uint64_t prefix_len, uint64_t* plan_ptr,
                           holdfast_error* error) {
  const int32_t code = sound->get_transfer(owner, handle, prefix_len, plan_ptr, error);
  if (code == 0 && prefix_len > 1) {
    uint64_t* words = (uint64_t*)(uintptr_t)*plan_ptr;
    const uint64_t first = words[2];
    words[2] = words[3];
    words[3] = first;
  }
  return code;
}

const holdfast_plugin_api* holdfast_plugin(void) {
  const char* over = getenv("HOLDFAST_STRANGE_OVER");
  void* library = over == NULL ? NULL : dlopen(over, RTLD_NOW | RTLD_LOCAL);
  holdfast_plugin_entry entry = NULL;
  if (is("crash_when_loaded")) abort();
  if (library == NULL) return NULL;
  *(void**)&entry = dlsym(library, HOLDFAST_PLUGIN_ENTRY);
  sound = entry();
  table = *sound;
  inside = *sound->inside;
  environment = *sound->environment;
  table.inside = &inside;
  table.environment = &environment;
  table.name = "strange";
  table.version = getenv("HOLDFAST_STRANGE");
  if (is("version")) table.abi_version = 7;
  if (is("lacks")) table.put_abort = NULL;
  if (is("short")) table.struct_size = offsetof(holdfast_plugin_api, get);
  if (is("older")) table.struct_size = offsetof(holdfast_plugin_api, touch);
  if (is("half_inside")) inside.peek = NULL;
  if (is("half_environment")) environment.struct_size = offsetof(holdfast_environment, reset);
  if (is("lone_environment")) table.inside = NULL;
  if (is("opaque") || is("opaque_swap")) table.inside = NULL, table.environment = NULL;
  if (is("no_environment")) table.environment = NULL;
  if (is("refuses")) table.open = refuse_to_open;
  if (is("crash")) table.local_fast_put_start = crash_at_a_put;
  if (is("hang")) table.local_fast_put_start = hang_at_a_put;
  if (is("swap") || is("opaque_swap")) table.get_transfer = swap_values;
  return &table;
}
