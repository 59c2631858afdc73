// Events of server logs.

package locks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/store/locks"
)

// twoWaits are a wait for a lock and its end. The values are of a test suite that hung for 18 seconds, with an autovacuum.
const twoWaits = `38.130 [13] LOG:  process 2013 still waiting for AccessExclusiveLock on relation 16387 of database 16385 after 1000.113 ms
38.130 [13] DETAIL:  Process holding the lock: 1863. Wait queue: 2013.
38.130 [13] STATEMENT:  ALTER TABLE "accounts" DISABLE TRIGGER ALL;
	DELETE FROM "accounts" WHERE name = 'Anna';
56.324 [13] LOG:  process 2013 acquired AccessExclusiveLock on relation 16387 of database 16385 after 19193.981 ms
56.324 [13] STATEMENT:  ALTER TABLE "accounts" DISABLE TRIGGER ALL;
`

const otherLines = `LOG:  checkpoint starting: time
[1863] ERROR:  canceling autovacuum task
[1863] CONTEXT:  automatic vacuum of table "test.public.accounts"
[7] ERROR:  deadlock detected
[7] DETAIL:  Process 7 waits for ShareLock on transaction 5; blocked by process 8.
[8] LOG:  process 8 detected deadlock while waiting for ShareLock on transaction 4 after 1000.05 ms
[8] DETAIL:  Processes holding the lock: 7, 9. Wait queue: 8, 10.
[8] HINT:  See server log for query details.
[8] STATEMENT:  UPDATE t SET body = 'LOG:  process 1 acquired X on Y after 1.0 ms'
	LOG:  process 2 acquired X on Y after 1.0 ms
[9] LOG:  process 9 avoided deadlock for ShareLock on tuple (0,1) of relation 5 of database 4 by rearranging queue order after 1001.000 ms
`

// readEvents returns the events of a log as lines of JSON.
func readEvents(t testing.TB, log string) (lines []string) {
	t.Helper()
	err := locks.ReadLog(strings.NewReader(log), func(e locks.Event) error {
		line, err := json.Marshal(e)
		lines = append(lines, string(line))
		return err
	})
	checktest.NoError(t, err, "read the log")
	return lines
}

func TestTheLogOfAHangHasTwoEvents(t *testing.T) {
	t.Parallel()
	checktest.Equal(t, strings.Join(readEvents(t, twoWaits), "\n"),
		`{"prefix":"38.130 [13]","what":"still waiting for","pid":2013,"lock":"AccessExclusiveLock",`+
			`"on":"relation 16387 of database 16385","ms":1000.113,"holders":[1863],"queue":[2013],`+
			`"statement":"ALTER TABLE \"accounts\" DISABLE TRIGGER ALL;"}`+"\n"+
			`{"prefix":"56.324 [13]","what":"acquired","pid":2013,"lock":"AccessExclusiveLock",`+
			`"on":"relation 16387 of database 16385","ms":19193.981,"statement":"ALTER TABLE \"accounts\" DISABLE TRIGGER ALL;"}`, "events")
}

func TestOtherLinesOfALog(t *testing.T) {
	t.Parallel()
	checktest.Equal(t, strings.Join(readEvents(t, otherLines), "\n"),
		`{"prefix":"[1863]","what":"canceling autovacuum task","context":"automatic vacuum of table \"test.public.accounts\""}`+"\n"+
			`{"prefix":"[8]","what":"detected deadlock while waiting for","pid":8,"lock":"ShareLock","on":"transaction 4","ms":1000.05,`+
			`"holders":[7,9],"queue":[8,10],"statement":"UPDATE t SET body = …"}`+"\n"+
			`{"prefix":"[9]","what":"avoided deadlock for","pid":9,"lock":"ShareLock",`+
			`"on":"tuple (0,1) of relation 5 of database 4","ms":1001}`,
		"events")
	long := strings.Repeat("x", 100_000)
	if n := len(readEvents(t, long+"\n"+long+" LOG:  checkpoint\n"+twoWaits)); n != 2 {
		t.Errorf("%d events after long lines, want 2", n)
	}
}

func FuzzReadLog(f *testing.F) {
	f.Add(twoWaits)
	f.Add(otherLines)
	f.Fuzz(func(t *testing.T, log string) {
		lines := strings.Count(log, "\n") + 1
		events := readEvents(t, log)
		if len(events) > lines {
			t.Errorf("%d events in %d lines", len(events), lines)
		}
		// Whatever comes first, the events of later lines are the same.
		all := readEvents(t, log+"\n"+twoWaits)
		if len(all) != len(events)+2 {
			t.Errorf("%d events, and %d with two more", len(events), len(all))
		}
	})
}
