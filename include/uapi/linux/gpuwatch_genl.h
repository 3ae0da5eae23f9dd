/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * gpuwatch_genl.h - generic netlink family "gpuwatch": state of the module,
 * attach and detach, and two multicast groups. The family is described in
 * include/spec/gpuwatch.yaml too; a test compares both. It must not carry what
 * is frequent: calls and their bytes go through the rings of gpuwatch.h.
 *
 * Overview
 * --------
 * GPUWATCH_CMD_GET	request without attributes; the answer has the state.
 * GPUWATCH_CMD_SET	A_ATTACH, with 0 also A_TIMEOUT_MS. The acknowledgment
 *			says that the work began; when it is done, be that
 *			before or after, comes a message of the same command and
 *			sequence number with A_RESULT and A_IN_FLIGHT.
 * GPUWATCH_CMD_VERDICT	A_VERDICT and A_SEVERITY, and what else is known. The
 *			kernel adds A_SEQ, A_TIME_NS, A_REALTIME_NS, A_INSTANCE
 *			and the submitter's ids, and relays it to group "verdicts".
 * GPUWATCH_CMD_EVENT	in group "events": A_EVENT says what happened.
 * GPUWATCH_CMD_HEARTBEAT in both groups: A_GROUP, and A_SEQ of the last message.
 *
 * The commands need CAP_NET_ADMIN or CAP_SYS_ADMIN in the initial user
 * namespace (GET is content with CAP_PERFMON), joining a group needs
 * CAP_NET_ADMIN there. The family exists in the initial network namespace only.
 *
 * Opens and closes are told while hooks are in (GPUWATCH_CMD_SET, or a reader of
 * /dev/gpuwatch). After joining ask GPUWATCH_CMD_GET once: it has the number of
 * the last message, and without a reader the module looks at opens and closes
 * from then on, else from the next heartbeat on.
 *
 * Loss: every message of a group has the next A_SEQ, counted from 1 when the
 * module was loaded, also while nobody listens; a number that never comes is a
 * loss: the receiver's buffer overran (the socket says ENOBUFS), or the
 * module's queue did. A heartbeat repeats the last number, so that a loss with
 * nothing behind it shows within a period. A_INSTANCE is another one after a
 * reload of the module; memberships do not survive it, so join again when nlctrl
 * tells that the family is back.
 *
 * Strings end with NUL; comm and module names are untrusted bytes. Numbers are
 * in host order. Unknown attributes are to be skipped: later modules add some.
 */
#ifndef _UAPI_LINUX_GPUWATCH_GENL_H
#define _UAPI_LINUX_GPUWATCH_GENL_H

#define GPUWATCH_GENL_NAME		"gpuwatch"
#define GPUWATCH_GENL_VERSION		1
#define GPUWATCH_GENL_GROUP_EVENTS	"events"
#define GPUWATCH_GENL_GROUP_VERDICTS	"verdicts"

/* Bytes of strings without their NUL, at most; of the digest exactly. */
#define GPUWATCH_GENL_RULE_MAX		64
#define GPUWATCH_GENL_TEXT_MAX		256
#define GPUWATCH_GENL_CONTAINER_MAX	128
#define GPUWATCH_GENL_DIGEST_LEN	32
#define GPUWATCH_GENL_TIMEOUT_MAX_MS	60000

/**
 * enum gpuwatch_genl_cmd - commands of the family, see the overview
 * @GPUWATCH_CMD_GET: state of the module
 * @GPUWATCH_CMD_SET: attach or detach
 * @GPUWATCH_CMD_VERDICT: submit a verdict; the same in group "verdicts"
 * @GPUWATCH_CMD_EVENT: in group "events" only
 * @GPUWATCH_CMD_HEARTBEAT: in both groups only
 */
enum gpuwatch_genl_cmd {
	GPUWATCH_CMD_GET = 1,
	GPUWATCH_CMD_SET = 2,
	GPUWATCH_CMD_VERDICT = 3,
	GPUWATCH_CMD_EVENT = 4,
	GPUWATCH_CMD_HEARTBEAT = 5,
};

/**
 * enum gpuwatch_genl_group - the groups as numbers of A_GROUP
 * @GPUWATCH_GROUP_EVENTS: "events"
 * @GPUWATCH_GROUP_VERDICTS: "verdicts"
 */
enum gpuwatch_genl_group {
	GPUWATCH_GROUP_EVENTS = 0,
	GPUWATCH_GROUP_VERDICTS = 1,
};

/**
 * enum gpuwatch_genl_event - what happened
 * @GPUWATCH_EVENT_OPEN: an NVIDIA node was opened (or could not be: A_RESULT)
 * @GPUWATCH_EVENT_CLOSE: the last reference to such a file went
 * @GPUWATCH_EVENT_IMAGE: a GPU module image was handed to a loader
 * @GPUWATCH_EVENT_ATTACHED: hooks went in, A_VALUE is the number of functions
 * @GPUWATCH_EVENT_DETACHED: hooks went out, no call in flight
 * @GPUWATCH_EVENT_DRIVER_LIVE: driver A_MODULE was loaded
 * @GPUWATCH_EVENT_DRIVER_GOING: driver A_MODULE is being unloaded
 * @GPUWATCH_EVENT_HOOKED: a function of A_MODULE was hooked, A_VALUE is
 *	enum gpuwatch_op
 * @GPUWATCH_EVENT_HOOK_FAILED: likewise, but it failed with A_RESULT
 * @GPUWATCH_EVENT_PLAN: the capture plan was replaced, A_VALUE is its number
 * @GPUWATCH_EVENT_LOSS: something was lost, A_LOSS once per cause
 */
enum gpuwatch_genl_event {
	GPUWATCH_EVENT_OPEN = 1,
	GPUWATCH_EVENT_CLOSE = 2,
	GPUWATCH_EVENT_IMAGE = 3,
	GPUWATCH_EVENT_ATTACHED = 4,
	GPUWATCH_EVENT_DETACHED = 5,
	GPUWATCH_EVENT_DRIVER_LIVE = 6,
	GPUWATCH_EVENT_DRIVER_GOING = 7,
	GPUWATCH_EVENT_HOOKED = 8,
	GPUWATCH_EVENT_HOOK_FAILED = 9,
	GPUWATCH_EVENT_PLAN = 10,
	GPUWATCH_EVENT_LOSS = 11,
};

/**
 * enum gpuwatch_genl_loss - why something was lost, over all consumers since
 *	the module was loaded
 * @GPUWATCH_CAUSE_RING_FULL: records, see enum gpuwatch_loss
 * @GPUWATCH_CAUSE_TOO_BIG: likewise
 * @GPUWATCH_CAUSE_PROBE_MISSED: calls missed by kretprobes
 * @GPUWATCH_CAUSE_OVERWRITTEN: records replaced in flight recorders: by intent,
 *	so never told by an event
 * @GPUWATCH_CAUSE_STAGE_EXHAUSTED: captures, for want of staging memory
 * @GPUWATCH_CAUSE_IMAGE_FAULT: images, see enum gpuwatch_image_loss; likewise
 *	those that follow
 * @GPUWATCH_CAUSE_IMAGE_MALFORMED: nonsense for a size
 * @GPUWATCH_CAUSE_IMAGE_TOO_BIG: over the budget of one
 * @GPUWATCH_CAUSE_IMAGE_OVER_BUDGET: over the budget of all
 * @GPUWATCH_CAUSE_IMAGE_NO_MEMORY: no memory
 * @GPUWATCH_CAUSE_IMAGE_DEADLINE: copying took too long
 * @GPUWATCH_CAUSE_IMAGE_KILLED: the caller was killed meanwhile
 * @GPUWATCH_CAUSE_IMAGE_EXPIRED: stored, and not fetched in time
 * @GPUWATCH_CAUSE_EVENT_QUEUE: events, the queue to the groups was full
 * @GPUWATCH_CAUSE_EVENT_MEMORY: events, there was no memory for a message
 */
enum gpuwatch_genl_loss {
	GPUWATCH_CAUSE_RING_FULL = 0,
	GPUWATCH_CAUSE_TOO_BIG = 1,
	GPUWATCH_CAUSE_PROBE_MISSED = 2,
	GPUWATCH_CAUSE_OVERWRITTEN = 3,
	GPUWATCH_CAUSE_STAGE_EXHAUSTED = 4,
	GPUWATCH_CAUSE_IMAGE_FAULT = 5,
	GPUWATCH_CAUSE_IMAGE_MALFORMED = 6,
	GPUWATCH_CAUSE_IMAGE_TOO_BIG = 7,
	GPUWATCH_CAUSE_IMAGE_OVER_BUDGET = 8,
	GPUWATCH_CAUSE_IMAGE_NO_MEMORY = 9,
	GPUWATCH_CAUSE_IMAGE_DEADLINE = 10,
	GPUWATCH_CAUSE_IMAGE_KILLED = 11,
	GPUWATCH_CAUSE_IMAGE_EXPIRED = 12,
	GPUWATCH_CAUSE_EVENT_QUEUE = 13,
	GPUWATCH_CAUSE_EVENT_MEMORY = 14,
};

/**
 * enum gpuwatch_genl_verdict - what was made of GPU code, worst last
 * @GPUWATCH_VERDICT_NONE: the message is about something else: a finding
 * @GPUWATCH_VERDICT_KNOWN: these very bytes are in a baseline
 * @GPUWATCH_VERDICT_KNOWN_KERNELS: new module, every kernel is known
 * @GPUWATCH_VERDICT_JIT: made at run time
 * @GPUWATCH_VERDICT_UNVERIFIED: there is code, and its bytes were not seen
 * @GPUWATCH_VERDICT_UNKNOWN: nothing of it is in a baseline
 * @GPUWATCH_VERDICT_MODIFIED: a known kernel with other code
 * @GPUWATCH_VERDICT_DENIED: on a deny list, or refused by the policy
 * @GPUWATCH_VERDICT_TAMPERED: the code in GPU memory is not what was loaded
 */
enum gpuwatch_genl_verdict {
	GPUWATCH_VERDICT_NONE = 0,
	GPUWATCH_VERDICT_KNOWN = 1,
	GPUWATCH_VERDICT_KNOWN_KERNELS = 2,
	GPUWATCH_VERDICT_JIT = 3,
	GPUWATCH_VERDICT_UNVERIFIED = 4,
	GPUWATCH_VERDICT_UNKNOWN = 5,
	GPUWATCH_VERDICT_MODIFIED = 6,
	GPUWATCH_VERDICT_DENIED = 7,
	GPUWATCH_VERDICT_TAMPERED = 8,
};

/**
 * enum gpuwatch_genl_severity - how grave
 * @GPUWATCH_SEVERITY_INFO: worth knowing
 * @GPUWATCH_SEVERITY_NOTICE: look at it some day
 * @GPUWATCH_SEVERITY_WARNING: look at it
 * @GPUWATCH_SEVERITY_ERROR: look at it now
 * @GPUWATCH_SEVERITY_CRITICAL: act now
 */
enum gpuwatch_genl_severity {
	GPUWATCH_SEVERITY_INFO = 1,
	GPUWATCH_SEVERITY_NOTICE = 2,
	GPUWATCH_SEVERITY_WARNING = 3,
	GPUWATCH_SEVERITY_ERROR = 4,
	GPUWATCH_SEVERITY_CRITICAL = 5,
};

/**
 * enum gpuwatch_genl_attr - attributes of all messages
 * @GPUWATCH_A_PAD: keeps 64-bit numbers aligned, no meaning
 * @GPUWATCH_A_SEQ: u64, number of the message in its group
 * @GPUWATCH_A_TIME_NS: u64, CLOCK_MONOTONIC
 * @GPUWATCH_A_REALTIME_NS: u64, CLOCK_REALTIME at the same moment
 * @GPUWATCH_A_INSTANCE: u64, random, another one per load of the module
 * @GPUWATCH_A_GROUP: u32, enum gpuwatch_genl_group
 * @GPUWATCH_A_EVENT: u32, enum gpuwatch_genl_event
 * @GPUWATCH_A_PID: u32, process id in the initial pid namespace
 * @GPUWATCH_A_TID: u32, thread id, likewise
 * @GPUWATCH_A_UID: u32, real user id in the initial user namespace
 * @GPUWATCH_A_START_NS: u64, CLOCK_BOOTTIME when the process started
 * @GPUWATCH_A_CGROUP_ID: u64, as in gpuwatch_rec
 * @GPUWATCH_A_COMM: string, name of the thread: untrusted
 * @GPUWATCH_A_NODE_KIND: u32, enum gpuwatch_node_kind
 * @GPUWATCH_A_RDEV: u32, (major << 20) | minor
 * @GPUWATCH_A_GPU_MINOR: u32, N of /dev/nvidiaN
 * @GPUWATCH_A_FILE_ID: u64, as in gpuwatch_rec
 * @GPUWATCH_A_RESULT: s32, 0 or a negative errno
 * @GPUWATCH_A_OPEN_FLAGS: u32, flags of open(2)
 * @GPUWATCH_A_IMAGE_ID: u64, as in gpuwatch_rec_image; 0: nothing is stored
 * @GPUWATCH_A_IMAGE_BYTES: u64, size of the image
 * @GPUWATCH_A_IMAGE_KIND: u32, enum gpuwatch_image_kind
 * @GPUWATCH_A_SYMBOL: string, the probed function
 * @GPUWATCH_A_MODULE: string, name of a driver module
 * @GPUWATCH_A_VALUE: u32, see enum gpuwatch_genl_event
 * @GPUWATCH_A_LOSS: nested, enum gpuwatch_genl_loss_attr; once per cause
 * @GPUWATCH_A_VERDICT: u32, enum gpuwatch_genl_verdict
 * @GPUWATCH_A_SEVERITY: u32, enum gpuwatch_genl_severity
 * @GPUWATCH_A_RULE: string, name of the rule that spoke
 * @GPUWATCH_A_DIGEST: 32 bytes, hash R of the module's bytes
 * @GPUWATCH_A_TEXT: string, one line for people
 * @GPUWATCH_A_CONTAINER: string, id of the container
 * @GPUWATCH_A_SUBMITTER_PID: u32, who submitted a verdict: the kernel's word
 * @GPUWATCH_A_SUBMITTER_UID: u32, likewise
 * @GPUWATCH_A_ATTACH: u32, 1 attach and keep attached, 0 detach
 * @GPUWATCH_A_TIMEOUT_MS: u32, how long a detach waits for calls in flight
 * @GPUWATCH_A_IN_FLIGHT: u32, calls inside the driver right now
 * @GPUWATCH_A_ABI_MAJOR: u32, of gpuwatch.h
 * @GPUWATCH_A_ABI_MINOR: u32, likewise
 * @GPUWATCH_A_SCHEMA: u32, likewise
 * @GPUWATCH_A_RELEASE: string, version of the module
 * @GPUWATCH_A_FEATURES: u64, GPUWATCH_FEAT_*
 * @GPUWATCH_A_ATTACHED: u32, 1 while hooks are in
 * @GPUWATCH_A_PINNED: u32, 1 when they stay without a consumer
 * @GPUWATCH_A_CONSUMERS: u32, consumers with delivery enabled
 * @GPUWATCH_A_PLAN: u32, number of the capture plan, 0 is the built-in one
 * @GPUWATCH_A_HOOK: nested, enum gpuwatch_genl_hook_attr; once per function
 * @GPUWATCH_A_DRIVER: nested, enum gpuwatch_genl_driver_attr; once per module
 * @GPUWATCH_A_RINGS: nested, enum gpuwatch_genl_rings_attr
 * @GPUWATCH_A_IMAGES: nested, enum gpuwatch_genl_images_attr
 * @GPUWATCH_A_STREAM: nested, enum gpuwatch_genl_stream_attr; once per group
 * @GPUWATCH_A_HEARTBEAT_MS: u32, period of the heartbeats
 */
enum gpuwatch_genl_attr {
	GPUWATCH_A_PAD = 1,
	GPUWATCH_A_SEQ = 2,
	GPUWATCH_A_TIME_NS = 3,
	GPUWATCH_A_REALTIME_NS = 4,
	GPUWATCH_A_INSTANCE = 5,
	GPUWATCH_A_GROUP = 6,
	GPUWATCH_A_EVENT = 7,
	GPUWATCH_A_PID = 8,
	GPUWATCH_A_TID = 9,
	GPUWATCH_A_UID = 10,
	GPUWATCH_A_START_NS = 11,
	GPUWATCH_A_CGROUP_ID = 12,
	GPUWATCH_A_COMM = 13,
	GPUWATCH_A_NODE_KIND = 14,
	GPUWATCH_A_RDEV = 15,
	GPUWATCH_A_GPU_MINOR = 16,
	GPUWATCH_A_FILE_ID = 17,
	GPUWATCH_A_RESULT = 18,
	GPUWATCH_A_OPEN_FLAGS = 19,
	GPUWATCH_A_IMAGE_ID = 20,
	GPUWATCH_A_IMAGE_BYTES = 21,
	GPUWATCH_A_IMAGE_KIND = 22,
	GPUWATCH_A_SYMBOL = 23,
	GPUWATCH_A_MODULE = 24,
	GPUWATCH_A_VALUE = 25,
	GPUWATCH_A_LOSS = 26,
	GPUWATCH_A_VERDICT = 27,
	GPUWATCH_A_SEVERITY = 28,
	GPUWATCH_A_RULE = 29,
	GPUWATCH_A_DIGEST = 30,
	GPUWATCH_A_TEXT = 31,
	GPUWATCH_A_CONTAINER = 32,
	GPUWATCH_A_SUBMITTER_PID = 33,
	GPUWATCH_A_SUBMITTER_UID = 34,
	GPUWATCH_A_ATTACH = 35,
	GPUWATCH_A_TIMEOUT_MS = 36,
	GPUWATCH_A_IN_FLIGHT = 37,
	GPUWATCH_A_ABI_MAJOR = 38,
	GPUWATCH_A_ABI_MINOR = 39,
	GPUWATCH_A_SCHEMA = 40,
	GPUWATCH_A_RELEASE = 41,
	GPUWATCH_A_FEATURES = 42,
	GPUWATCH_A_ATTACHED = 43,
	GPUWATCH_A_PINNED = 44,
	GPUWATCH_A_CONSUMERS = 45,
	GPUWATCH_A_PLAN = 46,
	GPUWATCH_A_HOOK = 47,
	GPUWATCH_A_DRIVER = 48,
	GPUWATCH_A_RINGS = 49,
	GPUWATCH_A_IMAGES = 50,
	GPUWATCH_A_STREAM = 51,
	GPUWATCH_A_HEARTBEAT_MS = 52,

	/* private: grows */
	__GPUWATCH_A_END,
	GPUWATCH_A_MAX = __GPUWATCH_A_END - 1,
};

/**
 * enum gpuwatch_genl_loss_attr - inside GPUWATCH_A_LOSS
 * @GPUWATCH_A_LOSS_PAD: no meaning
 * @GPUWATCH_A_LOSS_CAUSE: u32, enum gpuwatch_genl_loss
 * @GPUWATCH_A_LOSS_COUNT: u64, in an event: since it was told last
 * @GPUWATCH_A_LOSS_TOTAL: u64, since the module was loaded
 */
enum gpuwatch_genl_loss_attr {
	GPUWATCH_A_LOSS_PAD = 1,
	GPUWATCH_A_LOSS_CAUSE = 2,
	GPUWATCH_A_LOSS_COUNT = 3,
	GPUWATCH_A_LOSS_TOTAL = 4,
};

/**
 * enum gpuwatch_genl_hook_attr - inside GPUWATCH_A_HOOK, see gpuwatch_target
 * @GPUWATCH_A_HOOK_PAD: no meaning
 * @GPUWATCH_A_HOOK_MODULE: string, owner of the function
 * @GPUWATCH_A_HOOK_OP: u32, enum gpuwatch_op
 * @GPUWATCH_A_HOOK_METHOD: u32, GPUWATCH_METHOD_*
 * @GPUWATCH_A_HOOK_ERROR: s32, 0 or the negative errno of the last try
 * @GPUWATCH_A_HOOK_CALLS: u64, calls that went through it
 * @GPUWATCH_A_HOOK_IN_FLIGHT: u64, calls inside it right now
 */
enum gpuwatch_genl_hook_attr {
	GPUWATCH_A_HOOK_PAD = 1,
	GPUWATCH_A_HOOK_MODULE = 2,
	GPUWATCH_A_HOOK_OP = 3,
	GPUWATCH_A_HOOK_METHOD = 4,
	GPUWATCH_A_HOOK_ERROR = 5,
	GPUWATCH_A_HOOK_CALLS = 6,
	GPUWATCH_A_HOOK_IN_FLIGHT = 7,
};

/**
 * enum gpuwatch_genl_driver_attr - inside GPUWATCH_A_DRIVER
 * @GPUWATCH_A_DRIVER_MODULE: string, a driver module with functions known
 * @GPUWATCH_A_DRIVER_KNOWN: u32, its functions known
 * @GPUWATCH_A_DRIVER_HOOKED: u32, those hooked
 */
enum gpuwatch_genl_driver_attr {
	GPUWATCH_A_DRIVER_MODULE = 1,
	GPUWATCH_A_DRIVER_KNOWN = 2,
	GPUWATCH_A_DRIVER_HOOKED = 3,
};

/**
 * enum gpuwatch_genl_rings_attr - inside GPUWATCH_A_RINGS: all consumers since
 *	the module was loaded, see gpuwatch_stats
 * @GPUWATCH_A_RINGS_PAD: no meaning
 * @GPUWATCH_A_RINGS_RECORDS: u64, committed
 * @GPUWATCH_A_RINGS_OFFERED: u64, committed or lost
 * @GPUWATCH_A_RINGS_BYTES: u64, committed
 * @GPUWATCH_A_RINGS_WAKEUPS: u64, of pollers
 */
enum gpuwatch_genl_rings_attr {
	GPUWATCH_A_RINGS_PAD = 1,
	GPUWATCH_A_RINGS_RECORDS = 2,
	GPUWATCH_A_RINGS_OFFERED = 3,
	GPUWATCH_A_RINGS_BYTES = 4,
	GPUWATCH_A_RINGS_WAKEUPS = 5,
};

/**
 * enum gpuwatch_genl_images_attr - inside GPUWATCH_A_IMAGES, see
 *	gpuwatch_image_status
 * @GPUWATCH_A_IMAGES_PAD: no meaning
 * @GPUWATCH_A_IMAGES_PROBES: u32, probes set
 * @GPUWATCH_A_IMAGES_KEPT: u32, images that can be had
 * @GPUWATCH_A_IMAGES_PENDING: u32, captures under way
 * @GPUWATCH_A_IMAGES_USED_BYTES: u64, memory in use
 * @GPUWATCH_A_IMAGES_TOTAL_MAX: u64, budget of all
 * @GPUWATCH_A_IMAGES_HITS: u64, probes hit
 * @GPUWATCH_A_IMAGES_STORED: u64, images stored
 * @GPUWATCH_A_IMAGES_STORED_BYTES: u64, bytes of them
 */
enum gpuwatch_genl_images_attr {
	GPUWATCH_A_IMAGES_PAD = 1,
	GPUWATCH_A_IMAGES_PROBES = 2,
	GPUWATCH_A_IMAGES_KEPT = 3,
	GPUWATCH_A_IMAGES_PENDING = 4,
	GPUWATCH_A_IMAGES_USED_BYTES = 5,
	GPUWATCH_A_IMAGES_TOTAL_MAX = 6,
	GPUWATCH_A_IMAGES_HITS = 7,
	GPUWATCH_A_IMAGES_STORED = 8,
	GPUWATCH_A_IMAGES_STORED_BYTES = 9,
};

/**
 * enum gpuwatch_genl_stream_attr - inside GPUWATCH_A_STREAM
 * @GPUWATCH_A_STREAM_PAD: no meaning
 * @GPUWATCH_A_STREAM_GROUP: u32, enum gpuwatch_genl_group
 * @GPUWATCH_A_STREAM_SEQ: u64, number of the last message. Who joined before it
 *	asked gets every later one, or lost it.
 * @GPUWATCH_A_STREAM_LISTENED: u32, 1 when somebody joined
 */
enum gpuwatch_genl_stream_attr {
	GPUWATCH_A_STREAM_PAD = 1,
	GPUWATCH_A_STREAM_GROUP = 2,
	GPUWATCH_A_STREAM_SEQ = 3,
	GPUWATCH_A_STREAM_LISTENED = 4,
};

#endif /* _UAPI_LINUX_GPUWATCH_GENL_H */
