// Tests of queues and their members.
package kinds_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestQueuesAndMembers(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 2000})
	total := 0
	for _, queue := range r.Page(root + "/Queues.json").Records {
		base := root + "/Queues/" + queue["sid"].(string)
		members := r.Walk(base+"/Members.json?PageSize=3", nil)
		total += len(members)
		if queue["current_size"].(float64) != float64(len(members)) || queue["max_size"].(float64) < 5 {
			t.Errorf("%v with %d members", queue, len(members))
		}
		waited := 0.0
		for i, one := range members {
			checktest.MustEqual(t, one["position"].(float64), float64(i+1), `place %d: one["position"].(float64)`, i)
			checktest.MustEqual(t, one["queue_sid"], queue["sid"], `place %d: one["queue_sid"]`, i)
			checktest.MustTrue(t, one["sid"] == nil, `place %d: one["sid"] is %v`, i, one["sid"])
			waited += one["wait_time"].(float64)
			if got := r.One(base + "/Members/" + one["call_sid"].(string) + ".json"); fmt.Sprint(got) != fmt.Sprint(one) ||
				got["uri"] != base+"/Members/"+one["call_sid"].(string)+".json" {
				t.Fatalf("%v, its row is %v", got, one)
			}
			call := r.One(root + "/Calls/" + one["call_sid"].(string) + ".json")
			if call["date_created"] != one["date_enqueued"] {
				t.Fatalf("enqueued %v, created %v", one["date_enqueued"], call["date_created"])
			}
		}
		front, _, _ := r.Ask("GET", base+"/Members/Front.json", nil)
		if len(members) == 0 {
			if front != 404 || queue["average_wait_time"].(float64) != 0 {
				t.Errorf("an empty queue: Front %d, %v", front, queue)
			}
			continue
		}
		if got := r.One(base + "/Members/Front.json"); got["call_sid"] != members[0]["call_sid"] {
			t.Errorf("in front is %v, not %v", got["call_sid"], members[0]["call_sid"])
		}
		if average := queue["average_wait_time"].(float64); average != float64(int(waited)/len(members)) {
			t.Errorf("average wait %v of %v", average, waited)
		}
	}
	if total != 50 {
		t.Errorf("%d members, want 50", total)
	}
}

func TestDequeue(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 1000})
	queue := r.Page(root + "/Queues.json").Records[3]
	base := root + "/Queues/" + queue["sid"].(string)
	members := r.Page(base + "/Members.json?PageSize=3")
	first, second := members.Records[0]["call_sid"].(string), members.Records[1]["call_sid"].(string)
	r.Write("POST", base+"/Members/Front.json", nil, 400)
	if got := r.Write("POST", base+"/Members/Front.json", url.Values{"Url": {"https://example.com/v"}}, 200); got["call_sid"] != first ||
		got["position"].(float64) != 1 {
		t.Errorf("taken out: %v", got)
	}
	if got := r.One(base + "/Members/Front.json"); got["call_sid"] != second || got["position"].(float64) != 1 {
		t.Errorf("now in front: %v", got)
	}
	r.Write("POST", base+"/Members/"+first+".json", url.Values{"Url": {"https://example.com/v"}}, 404)
	if got := r.One(base + ".json"); got["current_size"].(float64) != queue["current_size"].(float64)-1 {
		t.Errorf("the queue: %v, was %v", got, queue)
	}
	// The page that begins behind the one who left goes on where it would have.
	if got := r.Page(*members.Next).Records; got[0]["call_sid"] == first || got[0]["position"].(float64) != 3 {
		t.Errorf("the next page begins with %v", got[0])
	}
	r.Control("/-/advance", `{"seconds":100}`, 200)
	if got := r.One(base + "/Members/Front.json"); got["wait_time"].(float64) != members.Records[1]["wait_time"].(float64)+100 {
		t.Errorf("a hundred seconds later: %v", got)
	}
	other := root + "/Queues/" + r.Page(root + "/Queues.json").Records[2]["sid"].(string)
	if status, _, _ := r.Ask("GET", other+"/Members/"+second+".json", nil); status != 404 {
		t.Errorf("in another queue: %d", status)
	}
	r.Write("DELETE", base+"/Members/"+second+".json", nil, 405)
}

func TestQueueWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 1000})
	made := r.Write("POST", root+"/Queues.json", url.Values{"FriendlyName": {"New <q>"}, "MaxSize": {"7"}}, 201)
	checktest.Equal(t, made["friendly_name"], "New <q>", `made: made["friendly_name"]`)
	checktest.Equal(t, made["max_size"].(float64), 7, `made: made["max_size"].(float64)`)
	checktest.Equal(t, made["current_size"].(float64), 0, `made: made["current_size"].(float64)`)
	at := root + "/Queues/" + made["sid"].(string)
	if got := r.Write("POST", at+".json", url.Values{"FriendlyName": {"Newer"}}, 200); got["friendly_name"] != "Newer" ||
		got["max_size"].(float64) != 7 {
		t.Errorf("updated: %v", got)
	}
	if got := r.Page(at + "/Members.json").Records; len(got) != 0 {
		t.Errorf("%d wait in a new queue", len(got))
	}
	for _, bad := range []url.Values{{}, {"FriendlyName": {""}}, {"FriendlyName": {"x"}, "MaxSize": {"0"}}, {"FriendlyName": {"x"},
		"MaxSize": {"5001"}}, {"FriendlyName": {"x"}, "MaxSize": {"many"}}} {
		r.Write("POST", root+"/Queues.json", bad, 400)
	}
	r.Write("DELETE", at+".json", nil, 204)
	for i, queue := range r.Page(root + "/Queues.json").Records {
		want := 400
		if queue["current_size"].(float64) == 0 {
			want = 204
		}
		r.Write("DELETE", root+"/Queues/"+queue["sid"].(string)+".json", nil, want)
		if i == 0 && want != 204 {
			t.Error("nobody should wait in the newest queue")
		}
	}
	if got := r.Page(root + "/Queues.json").Records; len(got) != 3 || slices.Contains(got.SIDs(), made["sid"].(string)) {
		t.Errorf("left: %v", got.SIDs())
	}
}
