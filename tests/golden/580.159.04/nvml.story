# What the default view shows
00:07:18.609 -                       python/1064             gpu0  GPU opened: NVIDIA H200
00:07:18.621 -                       python/1064             gpu0  GPU closed

# Events
1 client.closed
1 client.created
1 gpu.closed
1 gpu.opened
1 memory.mapped

# Processes

# Objects left in the end
0
