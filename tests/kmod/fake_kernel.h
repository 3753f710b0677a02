/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that has, of all that the module's probes ask for, just what
 * FAKE_<PROBE> says: so each probe can be asked where the answer is yes and
 * where it is no, and compat.h can be compiled under both. Every header that
 * they include is this one; a header that is itself the answer is there or not
 * (probes.sh makes them). Declarations only, as far as they are used there.
 */
#ifndef OTP_TESTS_KMOD_FAKE_KERNEL_H
#define OTP_TESTS_KMOD_FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#ifndef LINUX_VERSION_CODE
#define LINUX_VERSION_CODE KERNEL_VERSION(4, 4, 0)
#endif
#define CONFIG_HIGH_RES_TIMERS 1
#define CONFIG_CGROUPS	       1
#define CONFIG_PERF_EVENTS     1
#define CONFIG_SMP	       1
#define __user
#define __force
#define __init
#define __exit
#define GFP_KERNEL   1u
#define __GFP_ZERO   2u
#define __GFP_NOWARN 4u
#define CAP_SYS_ADMIN 21
#define POLLIN	     1
#define POLLRDNORM   64
#define EINVAL	     22
#define ENOMEM	     12
#define VM_MAYWRITE  0x20
#define TASK_SIZE_MAX 0x7ffffffff000ul
#define MSR_FS_BASE  0xc0000100u
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int16_t __s16;
typedef int32_t __s32;
typedef int64_t __s64;
typedef unsigned int gfp_t;

/* Lists and locks. */
struct hlist_node {
	struct hlist_node *next, **pprev;
};
struct hlist_head {
	struct hlist_node *first;
};
struct list_head {
	struct list_head *next, *prev;
};
struct mutex {
	int held;
};
struct rw_semaphore {
	int held;
};
#define HLIST_HEAD(name) struct hlist_head name = {NULL}
#define DEFINE_MUTEX(name) struct mutex name = {0}
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
int down_read_trylock(struct rw_semaphore *s);
void up_read(struct rw_semaphore *s);
void hlist_add_head(struct hlist_node *n, struct hlist_head *h);
void hlist_del_init(struct hlist_node *n);

/* Files and memory. */
struct inode;
struct path {
	void *dentry;
};
struct file {
	struct path f_path;
};
struct inode *file_inode(const struct file *f);
#ifdef FAKE_FILE_USER_INODE
const struct inode *file_user_inode(struct file *f);
#endif
#ifdef FAKE_FILE_USER_PATH
const struct path *file_user_path(const struct file *f);
#endif
struct mm_struct {
	unsigned long end_code;
#ifdef FAKE_MMAP_LOCK
	struct rw_semaphore mmap_lock;
#else
	struct rw_semaphore mmap_sem;
#endif
};
#ifdef FAKE_MMAP_LOCK
bool mmap_read_trylock(struct mm_struct *mm);
void mmap_read_unlock(struct mm_struct *mm);
#endif
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff;
#ifdef FAKE_VM_FLAGS_CLEAR
	const unsigned long vm_flags;
#else
	unsigned long vm_flags;
#endif
};
#ifdef FAKE_VM_FLAGS_CLEAR
void vm_flags_set(struct vm_area_struct *vma, unsigned long flags);
void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags);
#endif
#ifdef FAKE_PAGE_KMEMCG
struct page;
int PageKmemcg(struct page *page);
#endif
#define PAGE_KERNEL 1
#ifdef FAKE_VMALLOC_PLAIN
void *__vmalloc(unsigned long bytes, gfp_t how);
#else
void *__vmalloc(unsigned long bytes, gfp_t how, int protection);
#endif
unsigned long copy_from_user_nmi(void *to, const void __user *from, unsigned long n);
unsigned long __copy_from_user_inatomic(void *to, const void __user *from, unsigned long n);
#ifdef FAKE_RAW_COPY
unsigned long raw_copy_from_user(void *to, const void __user *from, unsigned long n);
#endif
void pagefault_disable(void);
void pagefault_enable(void);
bool in_nmi(void);

/* Tasks. */
struct pt_regs {
	unsigned long ip, cs;
};
struct task_struct {
	struct mm_struct *mm;
	unsigned int flags;
	int pid, tgid;
#ifdef FAKE_IN_EXECVE
	unsigned in_execve : 1;
#endif
#ifdef FAKE_START_BOOTTIME
	u64 start_boottime;
#else
	u64 real_start_time;
#endif
};
extern struct task_struct *current;
bool capable(int cap);
#ifdef FAKE_PERFMON_CAPABLE
bool perfmon_capable(void);
#endif
#ifdef FAKE_LOCKED_DOWN
enum lockdown_reason { LOCKDOWN_NONE, LOCKDOWN_PERF };
int security_locked_down(enum lockdown_reason what);
#endif
#ifdef FAKE_FSBASE_READ
unsigned long x86_fsbase_read_cpu(void);
#endif
void rdmsr_to(unsigned int msr, u64 *to);
#define rdmsrl(msr, to) rdmsr_to(msr, &(to))
#ifdef FAKE_EXIT_GROUP_DEAD
int register_trace_sched_process_exit(void (*fn)(void *data, struct task_struct *task, bool dead), void *data);
#else
int register_trace_sched_process_exit(void (*fn)(void *data, struct task_struct *task), void *data);
#endif

/* Control groups. */
struct kernfs_node {
#ifdef FAKE_KN_ID_UNION
	union {
		struct {
			u32 ino, generation;
		};
		u64 id;
	} id;
#else
	u64 id;
#endif
	unsigned int ino;
};
struct cgroup {
	struct kernfs_node *kn;
};
#ifdef FAKE_CGROUP_ID
u64 cgroup_id(const struct cgroup *c);
#endif

/* Time. */
typedef s64 ktime_t;
#define CLOCK_MONOTONIC 1
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum hrtimer_mode {
	HRTIMER_MODE_ABS = 0,
	HRTIMER_MODE_ABS_PINNED = 2,
#ifdef FAKE_HRTIMER_HARD
	HRTIMER_MODE_ABS_PINNED_HARD = 10,
#endif
};
struct hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *t);
};
void hrtimer_init(struct hrtimer *t, int clock, enum hrtimer_mode mode);
#ifdef FAKE_HRTIMER_SETUP
void hrtimer_setup(struct hrtimer *t, enum hrtimer_restart (*fn)(struct hrtimer *), int clock, enum hrtimer_mode mode);
#endif
u64 ktime_get_boot_ns(void);
#ifdef FAKE_BOOT_FAST_NS
u64 ktime_get_boot_fast_ns(void);
#endif

/* CPUs. */
enum cpuhp_state { CPUHP_INVALID = -1, CPUHP_AP_ONLINE_DYN };
#ifdef FAKE_CPUHP_MULTI
int cpuhp_setup_state_multi(enum cpuhp_state state, const char *name, int (*in)(unsigned int cpu, struct hlist_node *n),
			    int (*out)(unsigned int cpu, struct hlist_node *n));
void cpuhp_remove_multi_state(enum cpuhp_state state);
int cpuhp_state_add_instance(enum cpuhp_state state, struct hlist_node *n);
int cpuhp_state_remove_instance(enum cpuhp_state state, struct hlist_node *n);
#else
struct notifier_block {
	int (*notifier_call)(struct notifier_block *nb, unsigned long action, void *arg);
	struct notifier_block *next;
	int priority;
};
#define NOTIFY_OK	 1
#define CPU_TASKS_FROZEN 16
#define CPU_ONLINE	 2
#define CPU_DOWN_PREPARE 5
#define CPU_DOWN_FAILED	 6
int register_cpu_notifier(struct notifier_block *nb);
void unregister_cpu_notifier(struct notifier_block *nb);
#endif
#ifdef FAKE_CPUS_READ_LOCK
void cpus_read_lock(void);
void cpus_read_unlock(void);
#else
void get_online_cpus(void);
void put_online_cpus(void);
#endif
int smp_call_function_single(int cpu, void (*fn)(void *arg), void *arg, int wait);
int smp_processor_id(void);
extern int fake_cpus;
#define for_each_online_cpu(cpu) for ((cpu) = 0; (int)(cpu) < fake_cpus; (cpu)++)

/* Stacks. */
struct stack_trace {
	unsigned int nr_entries, max_entries;
	unsigned long *entries;
	int skip;
};
void save_stack_trace(struct stack_trace *trace);
#ifdef FAKE_STACK_TRACE_SAVE
unsigned int stack_trace_save(unsigned long *to, unsigned int nr, unsigned int skip);
#endif
#ifdef FAKE_UNWIND_START
struct unwind_state {
	int error;
};
void unwind_start(struct unwind_state *s, struct task_struct *task, struct pt_regs *regs, unsigned long *first);
#endif

/* Counters. */
struct perf_event;
struct perf_event_attr;
struct perf_sample_data;
typedef void (*perf_overflow_handler_t)(struct perf_event *e, struct perf_sample_data *d, struct pt_regs *r);
#ifdef FAKE_KERNEL_COUNTER
struct perf_event *perf_event_create_kernel_counter(struct perf_event_attr *attr, int cpu, struct task_struct *task,
						    perf_overflow_handler_t fn, void *context);
#endif

#ifdef FAKE_POLL_T
typedef unsigned int __poll_t;
#define EPOLLIN 1
#define EPOLLRDNORM 64
#endif

#endif
