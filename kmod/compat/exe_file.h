/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reference to the current task's executable. get_mm_exe_file() is not
 * exported on every kernel, so the RCU pointer is read here.
 */
#ifndef GW_COMPAT_EXE_FILE_H
#define GW_COMPAT_EXE_FILE_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

/* The caller puts the result with fput(); NULL for a task without memory. */
static inline struct file *gw_exe_file_get(void)
{
	struct mm_struct *mm = current->mm;
	struct file *file;

	if (!mm)
		return NULL;
	rcu_read_lock();
#ifdef HAS_GET_FILE_RCU_PTR
	file = get_file_rcu(&mm->exe_file);
#else
	file = rcu_dereference(mm->exe_file);
	if (file && !get_file_rcu(file))
		file = NULL;
#endif
	rcu_read_unlock();
	return file;
}

#endif
