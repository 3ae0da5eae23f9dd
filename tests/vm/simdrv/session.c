// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: a thread or process bound to a script of expected calls. They live
 * until unbound or until the control file that made them is closed. The
 * script's content is the business of script.c.
 */
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "gws.h"

struct gws_session {
	struct hlist_node node;
	struct kref ref;
	struct file *owner;	/* only compared, never followed */
	u32 id;
	bool thread;
	void *script;
	size_t bytes;
	spinlock_t lock;	/* the rest */
	size_t pos;
	u64 calls, taken, answered, mismatches, first_bad;
};

static DEFINE_HASHTABLE(gws_sessions, 8);
static DEFINE_SPINLOCK(gws_sessions_lock);	/* gws_sessions */
static atomic_t gws_nr_sessions;
static atomic64_t gws_mismatches;

static u32 gws_session_self(bool thread)
{
	return thread ? current->pid : current->tgid;
}

static void gws_session_free(struct kref *ref)
{
	struct gws_session *s = container_of(ref, struct gws_session, ref);

	kvfree(s->script);
	kfree(s);
}

void gws_session_put(struct gws_session *s)
{
	kref_put(&s->ref, gws_session_free);
}

static struct gws_session *gws_session_lookup(bool thread)
{
	u32 id = gws_session_self(thread);
	struct gws_session *s;

	hash_for_each_possible(gws_sessions, s, node, id)
		if (s->id == id && s->thread == thread)
			return s;
	return NULL;
}

/* The session the caller is bound to, with a reference, or NULL. */
struct gws_session *gws_session_find(void)
{
	struct gws_session *s;

	if (!atomic_read(&gws_nr_sessions))
		return NULL;
	spin_lock(&gws_sessions_lock);
	s = gws_session_lookup(true);
	if (!s)
		s = gws_session_lookup(false);
	if (s)
		kref_get(&s->ref);
	spin_unlock(&gws_sessions_lock);
	return s;
}

/* Takes the next expected call out of the script; NULL when it is used up. */
const struct gwsim_call *gws_session_next(struct gws_session *s)
{
	const struct gwsim_call *call = NULL;

	spin_lock(&s->lock);
	if (s->pos < s->bytes) {
		call = s->script + s->pos;
		s->pos += call->len;
		s->taken++;
	}
	spin_unlock(&s->lock);
	return call;
}

void gws_session_result(struct gws_session *s, bool matched)
{
	spin_lock(&s->lock);
	if (matched) {
		s->answered++;
	} else {
		if (!s->mismatches++)
			s->first_bad = s->taken ? s->taken - 1 : 0;
		atomic64_inc(&gws_mismatches);
	}
	spin_unlock(&s->lock);
}

static struct gws_session *gws_session_new(const struct gwsim_bind *bind)
{
	struct gws_session *s;
	long ret = -ENOMEM;

	if (bind->thread > 1 || bind->pad || bind->bytes > GWSIM_SCRIPT_MAX)
		return ERR_PTR(-EINVAL);
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return ERR_PTR(-ENOMEM);
	kref_init(&s->ref);
	spin_lock_init(&s->lock);
	s->thread = bind->thread;
	s->id = gws_session_self(s->thread);
	s->bytes = bind->bytes;
	s->first_bad = ~0ULL;
	if (s->bytes) {
		s->script = kvmalloc(s->bytes, GFP_KERNEL);
		if (!s->script)
			goto err_free;
		ret = -EFAULT;
		if (copy_from_user(s->script, u64_to_user_ptr(bind->script), s->bytes))
			goto err_free;
	}
	ret = gws_script_check(s->script, s->bytes, &s->calls);
	if (ret)
		goto err_free;
	return s;

err_free:
	gws_session_put(s);
	return ERR_PTR(ret);
}

long gws_session_bind(struct file *owner, const struct gwsim_bind *bind)
{
	struct gws_session *s = gws_session_new(bind);
	bool busy;

	if (IS_ERR(s))
		return PTR_ERR(s);
	s->owner = owner;
	spin_lock(&gws_sessions_lock);
	busy = gws_session_lookup(s->thread);
	if (!busy) {
		hash_add(gws_sessions, &s->node, s->id);
		atomic_inc(&gws_nr_sessions);
	}
	spin_unlock(&gws_sessions_lock);
	if (busy)
		gws_session_put(s);
	return busy ? -EBUSY : 0;
}

static void gws_session_unlink(struct gws_session *s)
{
	hash_del(&s->node);
	atomic_dec(&gws_nr_sessions);
}

/* Unbinds the calling thread, or else the calling process. */
long gws_session_unbind(struct gwsim_session_stat *stat)
{
	struct gws_session *s;

	spin_lock(&gws_sessions_lock);
	s = gws_session_lookup(true);
	if (!s)
		s = gws_session_lookup(false);
	if (s)
		gws_session_unlink(s);
	spin_unlock(&gws_sessions_lock);
	if (!s)
		return -ENOENT;
	spin_lock(&s->lock);
	stat->calls = s->calls;
	stat->answered = s->answered;
	stat->mismatches = s->mismatches;
	stat->first_bad = s->first_bad;
	spin_unlock(&s->lock);
	gws_session_put(s);
	return 0;
}

void gws_session_drop_owner(struct file *owner)
{
	struct gws_session *s;
	struct hlist_node *tmp;
	HLIST_HEAD(gone);
	int i;

	spin_lock(&gws_sessions_lock);
	hash_for_each_safe(gws_sessions, i, tmp, s, node) {
		if (s->owner != owner)
			continue;
		gws_session_unlink(s);
		hlist_add_head(&s->node, &gone);
	}
	spin_unlock(&gws_sessions_lock);
	hlist_for_each_entry_safe(s, tmp, &gone, node)
		gws_session_put(s);
}

u64 gws_session_mismatches(bool clear)
{
	return clear ? atomic64_xchg(&gws_mismatches, 0) : atomic64_read(&gws_mismatches);
}
