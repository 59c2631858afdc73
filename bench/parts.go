// Parts: the table of all, in the order in which they run.

package main

import (
	"understudy/bench/parts/claims"
	"understudy/bench/parts/cold"
	"understudy/bench/parts/cpu"
	"understudy/bench/parts/events"
	"understudy/bench/parts/express"
	"understudy/bench/parts/feed"
	"understudy/bench/parts/firstrun"
	"understudy/bench/parts/flights"
	"understudy/bench/parts/folders"
	"understudy/bench/parts/geo"
	"understudy/bench/parts/history"
	"understudy/bench/parts/html"
	"understudy/bench/parts/ids"
	"understudy/bench/parts/imports"
	"understudy/bench/parts/ingest"
	"understudy/bench/parts/jobs"
	"understudy/bench/parts/lists"
	"understudy/bench/parts/lockwatch"
	"understudy/bench/parts/logline"
	"understudy/bench/parts/memory"
	"understudy/bench/parts/million"
	"understudy/bench/parts/next"
	"understudy/bench/parts/nodes"
	"understudy/bench/parts/observe"
	"understudy/bench/parts/onlinestat"
	"understudy/bench/parts/otter"
	"understudy/bench/parts/overload"
	"understudy/bench/parts/profiler"
	"understudy/bench/parts/push"
	"understudy/bench/parts/reader"
	"understudy/bench/parts/restart"
	"understudy/bench/parts/rowrules"
	"understudy/bench/parts/rpc"
	"understudy/bench/parts/search"
	"understudy/bench/parts/shrink"
	"understudy/bench/parts/sums"
	"understudy/bench/parts/tables"
	"understudy/bench/parts/texts"
	"understudy/bench/parts/tls"
	"understudy/bench/parts/transport"
	"understudy/bench/parts/tunnel"
	"understudy/bench/parts/wal"
	"understudy/bench/parts/walk"
	"understudy/bench/parts/warm"
	"understudy/bench/parts/xml"
	"understudy/bench/rig"
)

// parts stand in the order in which they run: what needs a quiet machine least comes last.
var parts = []rig.Part{
	{Name: "cold", About: "a cold page, over upstream's own time", Run: cold.Measure},
	{Name: "warm", About: "a warm page: latency, and requests a second beside a bare handler", Run: warm.Measure},
	{Name: "express", About: "a warm page beside nginx, Varnish, net/http and an epoll loop", Run: express.Measure},
	{Name: "lane", About: "the express lane with many keys, a masked role, cold requests and idle connections", Run: express.MeasureLane},
	{Name: "tls", About: "a warm page over TLS, by HTTP/1.1 and HTTP/2, beside nginx", Run: tls.Measure},
	{Name: "restart", About: "a restart under load, and an empty server: its start and its memory", Run: restart.Measure},
	{Name: "rowrules", About: "a warm list for a role that finds some records alone, beside one that sees all", Run: rowrules.Measure},
	{Name: "tunnel", About: "a warm page through an open tunnel of the proxy, by HTTP/1.1 and HTTP/2, beside the drop-in", Run: tunnel.Measure},
	{Name: "html", About: "the pages people look at: requests a second, CPU and bytes beside Logrole", Run: html.Measure},
	{Name: "firstrun", About: "what a newcomer waits for: the table of make run, compiled and from a built binary", Run: firstrun.Measure},
	{Name: "observe", About: "a warm page with the access log, metrics, traces and lock watch on, beside one with them off", Run: observe.Measure},
	{Name: "profiler", About: "a warm page while a profile is taken", Run: profiler.Measure},
	{Name: "flights", About: "a hundred clients on one cold key, a killed leader, a deadline", Run: flights.Measure},
	{Name: "next", About: "the next page, one upstream latency later", Run: next.Measure},
	{Name: "walk", About: "a full walk with the official SDK, direct and the second time", Run: walk.Measure},
	{Name: "cpu", About: "CPU for each newly mirrored page, and its split by room", Run: cpu.Measure},
	{Name: "memory", About: "first page after a restart, resident memory, pages a byte limit holds", Run: memory.Measure},
	{Name: "million", About: "a million records on disk: start, bytes a record, by table", Run: million.Measure},
	{Name: "lists", About: "any filtered list of a million calls, made from records", Run: lists.Measure},
	{Name: "pglists", About: "lists, with the records in PostgreSQL", Run: lists.MeasurePostgres},
	{Name: "search", About: "words and conditions in a million messages", Run: search.Measure},
	{Name: "pgsearch", About: "search, with the records in PostgreSQL", Run: search.MeasurePostgres},
	{Name: "sums", About: "what a million messages add up to, asked first and again", Run: sums.Measure},
	{Name: "overload", About: "three times as many cold questions as may be answered, beside warm ones", Run: overload.Measure},
	{Name: "ingest", About: "a million records into the store, with changes and all indexes", Run: ingest.Measure},
	{Name: "pgingest", About: "a million records into PostgreSQL, with changes and all indexes", Run: ingest.MeasurePostgres},
	{Name: "nodes", About: "three processes on one PostgreSQL: a warm page, and a change at another's subscriber", Run: nodes.Measure},
	{Name: "jobs", About: "jobs that do nothing on PostgreSQL, beside River, and on SQLite", Run: jobs.Measure},
	{Name: "history", About: "what a record's past takes on disk", Run: history.Measure},
	{Name: "shrink", About: "free space of four fifths of a million records given back to the disk, beside readers", Run: shrink.Measure},
	{Name: "ids", About: "what ids take on disk, in short forms and as before", Run: ids.Measure},
	{Name: "imports", About: "64 jobs of 1 to 64 MB under one limit of memory", Run: imports.Measure},
	{Name: "folders", About: "what differs between two listings, beside an object a row", Run: folders.Measure},
	{Name: "xml", About: "a document of a hundred fields as XML, beside encoding/xml", Run: xml.Measure},
	{Name: "geo", About: "arc tangents one at a time and by vectors, beside math.Atan2; a search near a point", Run: geo.Measure},
	{Name: "otter", About: "the hot tier beside a cache of the library otter", Run: otter.Measure},
	{Name: "texts", About: "queries and ids as text, beside net/url and encoding/base64", Run: texts.Measure},
	{Name: "transport", About: "a hundred reads over one connection: one by one, pipelined, by HTTP/2", Run: transport.Measure},
	{Name: "onlinestat", About: "numbers summarised as they come", Run: onlinestat.Measure},
	{Name: "logline", About: "a log line of ten fields, beside slog, zap, zerolog and phuslu/log", Run: logline.Measure},
	{Name: "lockwatch", About: "a lock that can be watched, beside those of sync and of go-deadlock", Run: lockwatch.Measure},
	{Name: "wal", About: "durable entries in a log, beside bbolt, SQLite and tidwall/wal", Run: wal.Measure},
	{Name: "buffers", About: "an article's write-ahead log, with and without a buffer", Run: wal.Article},
	{Name: "events", About: "telling four subscribers in the process", Run: events.Measure},
	{Name: "feed", About: "from a change to a thousand subscribers, one of them slow", Run: feed.Measure},
	{Name: "rpc", About: "messages sent back over frames, gRPC, NATS and ZeroMQ; a change at a thousand subscribers of each wire", Run: rpc.Measure},
	{Name: "push", About: "ten thousand notifications to Apple's push service", Run: push.Measure},
	{Name: "tables", About: "records as tables in a PostgreSQL of the user: the first fill, and from a change to its row", Run: tables.Measure},
	{Name: "claims", About: "what articles have measured, measured again beside our way; writes docs/claims.md", Run: claims.Measure},
	{Name: "reader", About: "one reader a second on the newest page, through refreshes and a fault", Run: reader.Measure},
}
