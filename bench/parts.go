// Parts: the table of all, in the order in which they run.

package main

import "understudy/bench/rig"

// parts in the order they run: what needs a quiet machine least comes last.
var parts = []rig.Part{
	{"cold", "a cold page, over upstream's own time", cold},
	{"warm", "a warm page: latency, and requests a second beside a bare handler", warm},
	{"html", "the pages people look at: requests a second, CPU and bytes beside Logrole", htmlPages},
	{"profiler", "a warm page while a profile is taken", profiler},
	{"flights", "a hundred clients on one cold key, a killed leader, a deadline", flights},
	{"next", "the next page, one upstream latency later", next},
	{"walk", "a full walk with the official SDK, direct and the second time", walk},
	{"cpu", "CPU for each newly mirrored page, and its split by room", cpu},
	{"memory", "first page after a restart, resident memory, pages a byte limit holds", memory},
	{"million", "a million records on disk: start, bytes a record, by table", million},
	{"lists", "any filtered list of a million calls, made from records", lists},
	{"search", "words and conditions in a million messages", search},
	{"overload", "three times as many cold questions as may be answered, beside warm ones", overload},
	{"ingest", "a million records into the store, with changes and all indexes", ingest},
	{"history", "what a record's past takes on disk", history},
	{"imports", "64 jobs of 1 to 64 MB under one limit of memory", imports},
	{"folders", "what differs between two listings, beside an object a row", folders},
	{"xml", "a document of a hundred fields as XML, beside encoding/xml", xmlDocuments},
	{"texts", "queries and ids as text, beside net/url and encoding/base64", texts},
	{"onlinestat", "numbers summarised as they come", onlineStatistics},
	{"events", "telling four subscribers in the process", events},
	{"feed", "from a change to a thousand subscribers, one of them slow", feedPart},
	{"reader", "one reader a second on the newest page, through refreshes and a fault", reader},
}
