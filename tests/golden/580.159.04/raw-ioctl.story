# What the default view shows
00:07:18.531 -                       raw_ioctl/1055          -     denied: NV_ESC_RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_LOCK_TIMES: NV_ERR_INSUFFICIENT_PERMISSIONS

# Events
1 call.denied
1 client.closed
1 client.created
1 security.finding

# Processes

# Objects left in the end
0
