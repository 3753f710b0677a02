/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of the module's ring, for spin: WRITERS reserve, write and
 * commit RECORDS records each, of one unit or two, of which they may use only
 * one: the other becomes a record that is passed. A reader reads. With LIAR it
 * writes, at any time, one of the positions that could do harm. The model checks
 * every interleaving of single loads and stores; the orders of memory are the
 * code's own matter (its exchanges are full barriers).
 *
 *  - nobody is given a unit that another reservation still holds;
 *  - the reader is shown committed units only, in their order, and finds a
 *    record's head wherever the one before it ended;
 *  - what an honest reader was shown is not overwritten before he gave it back;
 *  - when all writers are done, everything that they committed is shown.
 *
 * Positions are bounded here, so they count units and never wrap.
 */
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef SIZE
#define SIZE 3
#endif
#ifndef TRIES
#define TRIES 2
#endif

#define IDLE 99
#define MOST (2 * WRITERS * RECORDS)

byte head, safe, producer, consumer;
byte pending[WRITERS];
byte done;

/* The state of the world, as the checks see it; not part of the protocol. */
byte holder[SIZE];  /* 0: nobody, else writer + 1, from reservation to commit */
byte reading[SIZE]; /* an honest reader looks at it */
bool written[MOST]; /* by position: committed */
byte heads[MOST];   /* by position: units of the record that begins here, 0: none does */

inline raise(at, value, now)
{
	now = at;
	do
	:: now >= value -> break
	:: else ->
		atomic {
			if
			:: at == now -> at = value; now = value
			:: else -> now = at
			fi
		}
	od
}

inline leave(me)
{
	pending[me] = IDLE;
	least = head;
	i = 0;
	do
	:: i == WRITERS -> break
	:: else ->
		now = pending[i];
		if
		:: now < least -> least = now
		:: else -> skip
		fi;
		i++
	od;
	raise(safe, least, now);
	raise(producer, least, now);
	least = 0; now = 0; i = 0
}

/* Sets room: there is room for units at h. */
inline look(h, units)
{
	at = consumer;
	bound = safe;
	room = at <= bound && bound - at <= SIZE && (at > h || h + units - at <= SIZE);
	at = 0; bound = 0
}

inline own(h, units, me)
{
	i = 0;
	do
	:: i == units -> break
	:: else ->
		assert(holder[(h + i) % SIZE] == 0);
		assert(reading[(h + i) % SIZE] == 0);
		holder[(h + i) % SIZE] = me + 1;
		i++
	od;
	i = 0
}

/* The first `used` units are the record, the rest is one to be passed. */
inline disown(h, units, used, me)
{
	heads[h] = used;
	if
	:: units > used -> heads[h + used] = units - used
	:: else -> skip
	fi;
	i = 0;
	do
	:: i == units -> break
	:: else ->
		assert(holder[(h + i) % SIZE] == me + 1);
		holder[(h + i) % SIZE] = 0;
		written[h + i] = true;
		i++
	od;
	i = 0
}

proctype writer(byte me)
{
	byte n, units, used, h, tries, least, now, i, at, bound;
	bool room, taken;

	do
	:: n == RECORDS -> break
	:: else ->
		if
		:: units = 1; used = 1
		:: units = 2; used = 2
		:: units = 2; used = 1
		fi;
		h = head;
		tries = 0;
		taken = false;
		do
		:: taken || tries == TRIES -> break
		:: else ->
			look(h, units);
			if
			:: !room -> break
			:: else -> skip
			fi;
			pending[me] = h;
			atomic {
				if
				:: head == h ->
					head = h + units;
					taken = true;
					own(h, units, me)
				:: else -> h = head
				fi
			};
			tries++
		od;
		if
		:: taken -> atomic { disown(h, units, used, me) }
		:: else -> skip
		fi;
		leave(me);
		room = false;
		n++
	od;
	done++
}

proctype reader()
{
	byte end, pos, next;

	do
	:: done == WRITERS && consumer == producer -> break
#ifdef LIAR
	:: done < WRITERS ->
		if
		:: consumer = 0
		:: consumer = producer
		:: consumer = head
		:: consumer = MOST
		fi
	:: done == WRITERS -> break
#else
	:: producer > consumer ->
		atomic {
			end = producer;
			pos = consumer;
			next = pos;
			do
			:: pos == end -> break
			:: else ->
				assert(written[pos]);
				assert(holder[pos % SIZE] == 0);
				assert((pos == next) == (heads[pos] != 0));
				next = next + heads[pos];
				reading[pos % SIZE] = 1;
				pos++
			od;
			assert(next == end);
			next = 0
		};
		atomic {
			pos = consumer;
			do
			:: pos == end -> break
			:: else -> reading[pos % SIZE] = 0; pos++
			od
		};
		consumer = end
#endif
	od;
	/* All writers are over: nothing is left behind. */
	assert(producer == head && safe == head)
}

init {
	byte w;

	atomic {
		do
		:: w == WRITERS -> break
		:: else -> pending[w] = IDLE; w++
		od;
		w = 0;
		do
		:: w == WRITERS -> break
		:: else -> run writer(w); w++
		od;
		run reader()
	}
}
