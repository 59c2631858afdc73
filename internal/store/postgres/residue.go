// This file says where the bytes of deleted rows may still be.

package postgres

import (
	"database/sql/driver"
	"fmt"

	"understudy/internal/store/db"
)

// residueQuery reads what PostgreSQL says about its files. A user without the role pg_read_all_stats does not see the
// transactions of other users.
const residueQuery = `SELECT count(*), count(*) FILTER (WHERE vacuumed IS NULL),
	coalesce(CAST(date_trunc('second', min(vacuumed)) AS TEXT), ''), CAST(coalesce(sum(n_dead_tup), 0) AS BIGINT),
	current_setting('autovacuum'), pg_walfile_name(pg_current_wal_lsn()), current_setting('max_wal_size'),
	current_setting('archive_mode'), (SELECT coalesce(last_archived_wal, 'none') FROM pg_stat_archiver),
	(SELECT coalesce(string_agg(slot_name, ', ' ORDER BY slot_name), '') FROM pg_replication_slots),
	(SELECT count(*) FROM pg_stat_replication),
	(SELECT coalesce(string_agg(CAST(pid AS TEXT), ', ' ORDER BY xact_start), '') FROM pg_stat_activity
	WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND xact_start < now() - INTERVAL '1 minute')
	FROM (SELECT n_dead_tup, greatest(last_vacuum, last_autovacuum) AT TIME ZONE 'UTC' AS vacuumed FROM pg_stat_user_tables
	WHERE schemaname = current_schema()) t`

// ListResidue implements db.Engine. Sanitize has run VACUUM, which overwrites nothing.
func (e *Engine) ListResidue(c db.Conn) (all []db.Residue, err error) {
	add := func(where, until string, args ...any) {
		all = append(all, db.Residue{Where: where, Until: fmt.Sprintf(until, args...)})
	}
	err = c.QueryOnce(residueQuery, nil, func(r []driver.Value) error {
		tables, never, oldest, dead, autovacuum := r[0].(int64), r[1].(int64), r[2].(string), r[3].(int64), r[4].(string)
		vacuumed := "every table was vacuumed at " + oldest + " UTC or later"
		if never > 0 {
			vacuumed = fmt.Sprintf("%d of %d tables were never vacuumed; run VACUUM", never, tables)
		}
		if pids := r[11].(string); pids != "" {
			vacuumed += "; transactions older than a minute may still need deleted rows, in sessions " + pids
		}
		add("deleted rows", "VACUUM removes them: %s; %d rows of all tables wait for it; autovacuum is %s", vacuumed, dead, autovacuum)
		add("free space in pages of tables and indexes", "new rows overwrite it, or VACUUM FULL writes the tables again (it locks them)")
		add("index words_lexemes, which keeps the words of erased records", "REINDEX INDEX CONCURRENTLY words_lexemes, or VACUUM FULL words")
		log := ""
		if slots := r[9].(string); slots != "" {
			log = "; these replication slots keep what they have not read: " + slots
		}
		add("write-ahead log up to file "+r[5].(string), "checkpoints reuse or remove its files (max_wal_size is %s)%s", r[6], log)
		if mode := r[7].(string); mode != "off" {
			add("archive of the log", "you delete its files from before the end of the erasure (archive_mode is %s, newest file: %s)", mode, r[8])
		}
		if n := r[10].(int64); n > 0 {
			add(fmt.Sprintf("standbys (%d are connected)", n), "they have replayed the log, and then as above")
		}
		add("base backups and dumps", "you delete those from before the end of the erasure; PostgreSQL has no list of them")
		return nil
	})
	return all, err
}
