# What the default view shows
00:07:24.026 -                       python/1084             gpu0  GPU opened: NVIDIA H200
00:07:24.269 -                       python/1084             gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:24.334 -                       python/1084             gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:24.355 -                       python/1084             gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:24.364 -                       python/1084             gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:24.367 -                       python/1084             gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:30.600 -                       python/1084             gpu0  GPU memory +2.0 MiB, now 550.0 MiB
00:07:30.952 -                       python/1084             gpu0  GPU memory -414.0 MiB, now 138.0 MiB
00:07:30.952 -                       python/1084             gpu0  GPU memory +504.0 MiB, now 642.0 MiB
00:07:31.006 -                       python/1084             gpu0  GPU memory +64.0 MiB, now 706.0 MiB
00:07:31.006 -                       python/1084             gpu0  GPU memory +32.0 MiB, now 738.0 MiB
00:07:31.200 -                       pt_autograd_0/1084      gpu0  GPU memory +64.0 MiB, now 802.0 MiB
00:07:31.201 -                       pt_autograd_0/1084      gpu0  GPU memory +32.0 MiB, now 834.0 MiB
00:07:32.376 -                       pt_autograd_0/1084      gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:32.376 -                       pt_autograd_0/1084      gpu0  GPU memory -844.0 MiB (34 objects), now 0 B, peak 844.0 MiB
00:07:32.376 -                       pt_autograd_0/1084      gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:32.376 -                       pt_autograd_0/1084      gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
61 memory.allocated
3 memory.freed
78 memory.mapped
7 memory.pinned
1 memory.unmapped
1 memory.unpinned
18 sync.created

# Processes
pid 1084: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1084: gpu memory: peak 884998144 bytes, in the end 0
pid 1084: host memory: peak 73396224 bytes, in the end 0
pid 1084: pinned memory: peak 21237760 bytes, in the end 0

# Objects left in the end
0
