/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net's life with the sandbox as a parameter: net_main is this with
 * sandbox_net, the tests run it in a thread without one.
 */
#ifndef OTP_DAEMON_NET_NET_H
#define OTP_DAEMON_NET_NET_H

struct config;

/* sock is borrowed. The exit status: 0 after STOP, 1 when the monitor is gone or something broke. */
int net_serve(int sock, int (*sandbox)(const struct config *c));

#endif
