// SPDX-License-Identifier: GPL-2.0
/*
 * Plays a live patch for the tests: owns a function of the simulated driver by
 * an ftrace callback that may change the instruction pointer, so that nobody
 * else can. It changes nothing.
 */
#include <linux/ftrace.h>
#include <linux/module.h>

static char *function = "nvidia_unlocked_ioctl";
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "name of the function to own");

/* The last parameter's type differs between kernels and is of no use here. */
static void notrace gwmodify_called(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, void *regs)
{
}

static struct ftrace_ops gwmodify_ops = {
	.func = (ftrace_func_t)(void *)gwmodify_called,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_SAVE_REGS_IF_SUPPORTED,
};

/* Gives the filter's memory back: ftrace_free_filter() is not for modules. */
static void gwmodify_free_filter(void)
{
	ftrace_set_filter(&gwmodify_ops, NULL, 0, 1);
}

static int __init gwmodify_init(void)
{
	int err = ftrace_set_filter(&gwmodify_ops, (unsigned char *)function, strlen(function), 1);

	if (!err)
		err = register_ftrace_function(&gwmodify_ops);
	if (err)
		gwmodify_free_filter();
	return err;
}

static void __exit gwmodify_exit(void)
{
	unregister_ftrace_function(&gwmodify_ops);
	gwmodify_free_filter();
}

module_init(gwmodify_init);
module_exit(gwmodify_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Owns a function as a live patch does, for tests");
