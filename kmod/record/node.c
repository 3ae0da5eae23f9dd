// SPDX-License-Identifier: GPL-2.0
/*
 * node.c - table of char majors. An entry is a family; the kind of a node
 * follows from family and minor.
 */
#include <linux/ctype.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <uapi/linux/magic.h>

#include "record/node.h"

#define GW_NVIDIA_MAJOR		195

u8 gw_majors[GW_MAJORS] __read_mostly;

/* Numbered names ("nvidia-nvswitch0") end in digits. */
static const struct {
	const char *name;
	u8 family;
} gw_major_names[] = {
	{ "nvidia", GW_FAMILY_FRONTEND },
	{ "nvidiactl", GW_FAMILY_FRONTEND },
	{ "nvidia-frontend", GW_FAMILY_FRONTEND },
	{ "nvidia-modeset", GW_FAMILY_FRONTEND },
	{ "nvidia-uvm", GW_FAMILY_UVM },
	{ "nvidia-caps", GW_FAMILY_OF(GPUWATCH_NODE_CAPS) },
	{ "nvidia-caps-imex-channels", GW_FAMILY_OF(GPUWATCH_NODE_IMEX) },
	{ "nvidia-nvswitch", GW_FAMILY_OF(GPUWATCH_NODE_NVSWITCH) },
	{ "nvidia-nvlink", GW_FAMILY_OF(GPUWATCH_NODE_NVLINK) },
};

static u8 gw_family_of_name(const char *name)
{
	size_t len = strlen(name);
	unsigned int i;

	while (len > 0 && isdigit(name[len - 1]))
		len--;
	for (i = 0; i < ARRAY_SIZE(gw_major_names); i++)
		if (len == strlen(gw_major_names[i].name) &&
		    !strncmp(name, gw_major_names[i].name, len))
			return gw_major_names[i].family;
	return strncmp(name, "nvidia", 6) ? GW_FAMILY_NONE : GW_FAMILY_OF(GPUWATCH_NODE_OTHER);
}

/* "195 nvidia\n": lines of the part "Character devices:" of /proc/devices. */
static void gw_node_parse(char *text, u8 *majors)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		unsigned int major = 0;
		u8 family;

		if (!strncmp(line, "Block", 5))
			break;
		line = skip_spaces(line);
		while (isdigit(*line) && major < GW_MAJORS)
			major = 10 * major + (*line++ - '0');
		family = gw_family_of_name(skip_spaces(line));
		/* One major may carry several names, the frontend's for one. */
		if (major < GW_MAJORS && family != GW_FAMILY_NONE)
			majors[major] = family;
	}
}

/* The real list, and not what a mount namespace may show under that name. */
static bool gw_node_is_list(struct file *file)
{
	const struct dentry *dentry = file->f_path.dentry;

	return file_inode(file)->i_sb->s_magic == PROC_SUPER_MAGIC &&
	       IS_ROOT(dentry->d_parent) && !strcmp(dentry->d_name.name, "devices");
}

/*
 * In the caller's mount namespace: who attaches, or loads a driver. Kernel
 * threads have none to speak of in newer kernels.
 */
void gw_node_refresh(void)
{
	const size_t room = 16384;
	u8 *majors = kzalloc(GW_MAJORS, GFP_KERNEL);
	char *text = kmalloc(room, GFP_KERNEL);
	struct file *file;
	loff_t pos = 0;
	ssize_t got = 0;

	WRITE_ONCE(gw_majors[GW_NVIDIA_MAJOR], GW_FAMILY_FRONTEND);
	if (!majors || !text)
		goto out_free;
	majors[GW_NVIDIA_MAJOR] = GW_FAMILY_FRONTEND;
	file = filp_open("/proc/devices", O_RDONLY, 0);
	if (IS_ERR(file))
		goto out_free;
	if (gw_node_is_list(file))
		got = kernel_read(file, text, room - 1, &pos);
	filp_close(file, NULL);
	if (got > 0) {
		text[got] = '\0';
		gw_node_parse(text, majors);
		memcpy(gw_majors, majors, GW_MAJORS);
	}
out_free:
	kfree(text);
	kfree(majors);
}

bool gw_node_is_driver(const char *name)
{
	/* nvidia, nvidia_uvm, nvidia_modeset, ...: '-' is '_' in module names */
	return !strncmp(name, "nvidia", 6) && (name[6] == '\0' || name[6] == '_');
}

u8 gw_node_learn(dev_t dev, const char *owner)
{
	u8 kind = gw_node_kind(dev);

	if (kind != GW_NODE_NONE || MAJOR(dev) >= GW_MAJORS)
		return kind;
	if (!strcmp(owner, "nvidia_uvm"))
		WRITE_ONCE(gw_majors[MAJOR(dev)], GW_FAMILY_UVM);
	else if (gw_node_is_driver(owner))
		WRITE_ONCE(gw_majors[MAJOR(dev)], GW_FAMILY_OF(GPUWATCH_NODE_OTHER));
	return gw_node_kind(dev);
}
