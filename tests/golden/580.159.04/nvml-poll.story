# What the default view shows
02:03:20.240 -                       python3/2532            gpu0  GPU opened: NVIDIA H200
02:03:31.253 -                       python3/2532            gpu0  GPU closed

# Events
1 client.closed
1 client.created
1 gpu.closed
1 gpu.opened
1 memory.mapped

# Processes

# Objects left in the end
0
