/* A Fluxon runtime from outside: what a shared library gives so that Holdfast drives it, with the same traces and
 * checks as its own. Pure C; nothing but this header is needed to build one.
 *
 * The library exports one function, `holdfast_plugin` (holdfast_plugin_entry). It gives a table that lives as long as
 * the library is loaded. What each call takes, does and fails with is the Plan contract's; here is only what the
 * contract leaves to a language.
 *
 * Versions. `abi_version` is HOLDFAST_PLUGIN_ABI_VERSION of the header the library was built with; another one is
 * refused. Within one version structs only grow at their end: each begins with `struct_size`, which whoever made the
 * struct sets to the size it knew, and the other side uses no more of it than that. A function past the end, or null,
 * is one that the library does not have: those marked OPTIONAL may be missing, and then checks that need them are said
 * to be "not decidable"; without one of the others the library is refused.
 *
 * Errors. A call gives 0, or the number of the Plan API (1001 invalid argument, 4000 key not found, 7000 network ...)
 * and then fills in `error->detail`, words for a person. `error` is never null and is zeroed by the caller. Words of
 * other numbers than these are passed on as they are. A failed call has set none of its answers, but for what the
 * contract says.
 *
 * Memory. Everything passed in belongs to the caller and is good until the call returns: keep copies. Answers go to
 * memory of the caller's. What is of no known length is handed over by a sink, a function of the caller's that is
 * called before the call returns, on the same thread; its bytes are the library's and good until it returns. A sink
 * calls nothing of the library. Three things are made and ended by their own functions: an owner (open, close), a plan
 * (ended by commit, abort or release) and a commit (local_fast_put_commit, commit_drop).
 *
 * Processes. The library is loaded in one process and used in children forked from it: it starts no thread, and opens
 * nothing that a child cannot use, before `open`.
 *
 * Threads. Every call may come from any thread, several at once, on a stack of as little as 1 MiB. `open` and `close`
 * of one owner are alone. No call
 * throws, longjmps or ends the process; one that does, or that never returns, is a verdict of the run that made it.
 *
 * Time. An owner may be given a clock (holdfast_host). It then has no other: it knows of the time only by asking, waits
 * only by waiting for that clock, and starts no thread that does anything to it by itself. A library that cannot do so
 * ignores the clock and lives in real time; what needs time to pass is then not decidable. */
#ifndef HOLDFAST_PLUGIN_H
#define HOLDFAST_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLDFAST_PLUGIN_ABI_VERSION 1u
#define HOLDFAST_PLUGIN_ENTRY "holdfast_plugin"
#define HOLDFAST_DETAIL_BYTES 240
#define HOLDFAST_LABEL_BYTES 64

/* One owner's segment and this process as its client. The library's own. */
typedef struct holdfast_owner holdfast_owner;
/* One submitted commit. The library's own. */
typedef struct holdfast_commit holdfast_commit;

typedef struct holdfast_error {
  uint32_t struct_size;
  char detail[HOLDFAST_DETAIL_BYTES]; /* ends with 0 */
} holdfast_error;

/* UTF-8 or any other bytes, not ended by 0. */
typedef struct holdfast_text {
  const char* data;
  uint64_t bytes;
} holdfast_text;

typedef struct holdfast_keys {
  const holdfast_text* keys;
  uint64_t count;
} holdfast_keys;

/* What the owner is given by whoever drives it. Good until `close` has returned. */
typedef struct holdfast_host {
  uint32_t struct_size;
  void* context;
  /* Both or neither. Nanoseconds; never goes back. */
  int64_t (*now_ns)(void* context);
  /* Comes back at that instant, or earlier when something may have changed. Holding a lock here is right only where no
   * other thread's call is to go on meanwhile. */
  void (*wait_until)(void* context, int64_t instant_ns);
} holdfast_host;

enum holdfast_page_choice {
  HOLDFAST_PAGES_BEST = 0,
  HOLDFAST_PAGES_HUGE_TLB = 1,
  HOLDFAST_PAGES_TRANSPARENT_HUGE = 2,
  HOLDFAST_PAGES_PLAIN = 3
};

/* What is asked of an owner. One that cannot have it refuses to open, with InvalidArgument. */
typedef struct holdfast_config {
  uint32_t struct_size;
  uint32_t mappings; /* how many distinct mappings its generations take in turn; 0: as the library likes */
  uint64_t segment_bytes;
  uint64_t grant_bytes;      /* slots never cross two grants; a multiple of 4096 */
  uint64_t first_generation; /* 0: the start time in seconds */
  int32_t pages;             /* a holdfast_page_choice; a wish, not a condition */
  int32_t overwrite_checks;  /* not 0: poison what is let go and look for late copies, where the library can */
} holdfast_config;

typedef struct holdfast_segment {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t write_ptr;
  uint64_t read_ptr;
  uint64_t len;
  uint64_t generation;
  char segment_label[HOLDFAST_LABEL_BYTES]; /* ends with 0 */
  char node_id[HOLDFAST_LABEL_BYTES];
} holdfast_segment;

typedef struct holdfast_put_options {
  uint32_t struct_size;
  int32_t reject_if_exists;
  int32_t reject_if_being_written;
  int32_t write_through;
  const uint8_t* mask; /* null, or one flag a key */
  uint64_t mask_count;
  const uint32_t* put_group_lens; /* null, or groups that add up to the number of keys */
  uint64_t put_group_count;
} holdfast_put_options;

typedef struct holdfast_get_start {
  uint32_t struct_size;
  int32_t all_hit;
  uint64_t handle;
  uint64_t raw_prefix_hit_len;
  uint64_t transferable_len;
  uint64_t prefix_hit_groups;
  uint64_t first_miss_index;
  uint64_t first_miss_group;
} holdfast_get_start;

typedef void (*holdfast_segment_sink)(void* context, const holdfast_segment* segment);
typedef void (*holdfast_codes_sink)(void* context, const int32_t* codes, uint64_t count);
typedef void (*holdfast_bytes_sink)(void* context, const void* bytes, uint64_t count);

/* ---- OPTIONAL: looking without touching. Nothing here changes anything, not even the order of evictions. */

enum holdfast_key_state { HOLDFAST_KEY_PREPARED = 0, HOLDFAST_KEY_LOCAL_VISIBLE = 1, HOLDFAST_KEY_COMMITTED = 2 };

typedef struct holdfast_key_view {
  uint32_t struct_size;
  int32_t state; /* a holdfast_key_state */
  uint64_t generation;
  uint64_t write_address;
  uint64_t read_address;
  uint64_t value_bytes;
  uint32_t holders; /* of handles and of read plans */
  int32_t damaged;  /* not 0: by `damage` */
} holdfast_key_view;

typedef struct holdfast_plan_view {
  uint32_t struct_size;
  int32_t is_read_plan;
  int32_t expired;    /* past the plan time-out */
  int32_t committing; /* submitted, its work has not ended */
  uint64_t number;    /* counted from 1, never used again */
  uint64_t generation;
  uint64_t value_bytes; /* put plans; of the first key for read plans */
  int64_t started_at_ns;
  const holdfast_text* keys; /* good until the next call that changes something */
  const uint64_t* addresses;
  uint64_t count;
} holdfast_plan_view;

typedef struct holdfast_counts {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t generation;
  uint64_t incarnation; /* 1, and 1 more with each restart */
  uint64_t live_plans;
  uint64_t live_handles;
  uint64_t undecided_commits;
  uint64_t holders;
  uint64_t prepared_slots;
  uint64_t stored_keys;
  uint64_t stored_bytes; /* of slots */
  uint64_t held_bytes;   /* of slots that are not free */
  uint64_t damages;      /* how many values were ever damaged, by `damage` */
} holdfast_counts;

enum holdfast_place_kind { HOLDFAST_PLACE_UNKNOWN = 0, HOLDFAST_PLACE_SEGMENT = 1, HOLDFAST_PLACE_PLAN_BLOB = 2 };

typedef struct holdfast_place {
  uint32_t struct_size;
  int32_t kind;         /* a holdfast_place_kind */
  uint64_t incarnation; /* of segments: the last that used this mapping */
  uint64_t offset;
  int32_t read_side;
  uint32_t reserved;
} holdfast_place;

enum holdfast_incident_kind {
  HOLDFAST_FREE_SLOT_WRITTEN = 0,
  HOLDFAST_RED_ZONE_WRITTEN = 1,
  HOLDFAST_DUPLICATE_KEY = 2,
  HOLDFAST_ABORT_OF_READ_PLAN = 3,
  HOLDFAST_RELEASE_OF_PUT_PLAN = 4
};

/* Damage that no answer tells the caller about. */
typedef struct holdfast_incident {
  uint32_t struct_size;
  int32_t kind; /* a holdfast_incident_kind */
  int64_t found_at_ns;
  uint64_t slot_offset;
  uint64_t first_wrong_byte;
  uint64_t last_plan; /* by number; 0: no plan */
  holdfast_text where;
  holdfast_text last_key;
} holdfast_incident;

typedef struct holdfast_pages {
  uint32_t struct_size;
  int32_t kind; /* what was given, a holdfast_page_choice other than best */
  uint64_t page_bytes;
  uint64_t present_bytes;
  uint64_t huge_bytes;
  char why_not_better[HOLDFAST_DETAIL_BYTES];
} holdfast_pages;

typedef void (*holdfast_stored_sink)(void* context, holdfast_text key, const holdfast_key_view* view);
typedef void (*holdfast_incident_sink)(void* context, const holdfast_incident* incident);

/* All of it or none. */
typedef struct holdfast_inside {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*peek)(holdfast_owner* owner, holdfast_text key, holdfast_key_view* view); /* 4000: neither is it stored nor
                                                                                         reserved */
  int32_t (*look_at_plan)(holdfast_owner* owner, uint64_t plan, holdfast_plan_view* view); /* 1001: not a live one */
  int32_t (*transferable)(holdfast_owner* owner, uint64_t handle, uint64_t* values);       /* 1001: not a live one */
  int32_t (*has_room)(holdfast_owner* owner, uint64_t count, uint64_t value_bytes);        /* not 0: it has */
  void (*count)(holdfast_owner* owner, holdfast_counts* counts);
  void (*segment)(holdfast_owner* owner, holdfast_segment* segment); /* the live one, mounted or not */
  void (*place_of)(holdfast_owner* owner, uint64_t address, holdfast_place* place);
  void (*for_each_stored)(holdfast_owner* owner, holdfast_stored_sink sink, void* context); /* in order of storing */
  void (*check_all_slots)(holdfast_owner* owner);
  void (*take_incidents)(holdfast_owner* owner, holdfast_incident_sink sink, void* context);
  int32_t (*has_incidents)(holdfast_owner* owner);
  /* When something next happens by itself, by the clock of the host; INT64_MAX: nothing does. */
  int64_t (*next_due_ns)(holdfast_owner* owner);
  void (*run_due)(holdfast_owner* owner, int64_t now_ns);
} holdfast_inside;

/* ---- OPTIONAL: what an environment decides, and what is nobody's call. */

enum holdfast_fate { HOLDFAST_STORED = 0, HOLDFAST_NOT_STORED = 1, HOLDFAST_STORED_LATER = 2 };

typedef struct holdfast_key_choice {
  int32_t fate; /* a holdfast_fate */
  int32_t code;
  int64_t stored_after_ns;
} holdfast_key_choice;

typedef struct holdfast_commit_choice {
  uint32_t struct_size;
  int32_t future_fails;
  int32_t without_bound;
  int32_t has_route_after;
  int64_t answer_after_ns;
  int64_t route_after_ns;
  const holdfast_key_choice* keys; /* fewer than the plan's: the rest is stored, code 0 */
  uint64_t count;
} holdfast_commit_choice;

/* All of it or none. Each choice holds for the next call of its kind that gets as far as using it. */
typedef struct holdfast_environment {
  uint32_t struct_size;
  uint32_t reserved;
  void (*choose_next_commit)(holdfast_owner* owner, const holdfast_commit_choice* choice);
  /* `failing_key_index` UINT64_MAX: none fails by itself. */
  void (*choose_next_get_start)(holdfast_owner* owner, int32_t needs_transfer, uint64_t failing_key_index);
  void (*choose_next_abort)(holdfast_owner* owner, uint64_t first_reserved_key_index);
  void (*choose_next_release_pins)(holdfast_owner* owner);
  void (*choose_next_release_drops_after)(holdfast_owner* owner, int64_t delay_ns);
  void (*choose_next_cancel_pins)(holdfast_owner* owner);
  void (*mount_at)(holdfast_owner* owner, int64_t instant_ns); /* INT64_MAX: never */
  int32_t (*evict)(holdfast_owner* owner, holdfast_text key);  /* 0: not committed, or held */
  /* A byte of the key's value, chosen by `draw`, is another one from now on. 0: not committed, held, or damaged before.
   */
  int32_t (*damage)(holdfast_owner* owner, holdfast_text key, uint64_t draw);
  void (*restart)(holdfast_owner* owner, uint64_t generation_step);
  void (*client_died)(holdfast_owner* owner);
  void (*end_client)(holdfast_owner* owner); /* its own end: calls answer General 1000 */
  void (*new_client)(holdfast_owner* owner);
  /* A new run on the same memory, as if just opened. 0, or the number of an error. */
  int32_t (*reset)(holdfast_owner* owner, const holdfast_config* config, holdfast_error* error);
} holdfast_environment;

/* ---- The table. */

typedef struct holdfast_plugin_api {
  uint32_t abi_version;
  uint32_t struct_size;
  const char* name;    /* "embedded owner" */
  const char* version; /* "0.1.0" */

  int32_t (*open)(const holdfast_host* host, const holdfast_config* config, holdfast_owner** owner,
                  holdfast_error* error);
  /* The client's end and the owner's handle's: nothing made by it may be used any more, commits among them. */
  void (*close)(holdfast_owner* owner);

  int32_t (*wait_local_segments_ready)(holdfast_owner* owner, holdfast_segment_sink sink, void* context,
                                       holdfast_error* error);
  int32_t (*local_fast_put_start)(holdfast_owner* owner, const holdfast_keys* keys, uint64_t value_len,
                                  const holdfast_put_options* options, uint64_t* plan_ptr, holdfast_error* error);
  int32_t (*local_fast_put_commit)(holdfast_owner* owner, uint64_t plan_ptr, holdfast_commit** commit,
                                   holdfast_error* error);
  /* Timeout 1002: not decided after `limit_ns`; it may be waited for again. */
  int32_t (*commit_wait)(holdfast_owner* owner, holdfast_commit* commit, int64_t limit_ns, holdfast_codes_sink sink,
                         void* context, holdfast_error* error);
  /* Each commit once. The work goes on. */
  void (*commit_drop)(holdfast_owner* owner, holdfast_commit* commit);
  int32_t (*put_abort)(holdfast_owner* owner, uint64_t plan_ptr, holdfast_error* error);
  int32_t (*get_start)(holdfast_owner* owner, const holdfast_keys* keys, int32_t prefix_best_effort,
                       const uint32_t* atomic_group_lens, uint64_t group_count, holdfast_get_start* answer,
                       holdfast_error* error);
  int32_t (*get_transfer)(holdfast_owner* owner, uint64_t handle, uint64_t prefix_len, uint64_t* plan_ptr,
                          holdfast_error* error);
  int32_t (*cancel_get_transfer)(holdfast_owner* owner, uint64_t handle, holdfast_error* error);
  int32_t (*release_views)(holdfast_owner* owner, uint64_t plan_ptr, holdfast_error* error);
  int32_t (*remove)(holdfast_owner* owner, holdfast_text key, holdfast_error* error);
  int32_t (*put)(holdfast_owner* owner, holdfast_text key, const void* bytes, uint64_t count, holdfast_error* error);
  int32_t (*get)(holdfast_owner* owner, holdfast_text key, holdfast_bytes_sink sink, void* context,
                 holdfast_error* error);

  /* OPTIONAL. Makes the pages of [address, address + bytes) of a write mapping be there, without changing a byte. */
  void (*touch)(holdfast_owner* owner, uint64_t address, uint64_t bytes);
  /* OPTIONAL. What pages the live segment has, as the system tells. */
  void (*pages)(holdfast_owner* owner, holdfast_pages* pages);
  const holdfast_inside* inside;           /* OPTIONAL, null */
  const holdfast_environment* environment; /* OPTIONAL, null; only beside `inside` */
} holdfast_plugin_api;

typedef const holdfast_plugin_api* (*holdfast_plugin_entry)(void);

#ifdef __cplusplus
}
#endif

#endif
