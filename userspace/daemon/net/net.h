/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net's whole life, with the sandbox as a parameter: net_main passes
 * sandbox_net, tests run net in a thread without one.
 */
#ifndef OTP_DAEMON_NET_NET_H
#define OTP_DAEMON_NET_NET_H

struct config;

/* sock is borrowed. Returns the exit status: 0 after STOP, 1 after an error or the end of the monitor. */
int net_serve(int sock, int (*sandbox)(const struct config *c));

#endif
