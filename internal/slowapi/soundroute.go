// The paths of what is said and shown: conferences, recordings, media and more.
package slowapi

import "slices"

var soundRoutes = []route{
	{pattern: "Accounts/*/Conferences", kind: conferences},
	{pattern: "Accounts/*/Conferences/*", kind: conferences, instance: true},
	{pattern: "Accounts/*/Conferences/*/Participants", kind: participants, parent: conferences, within: participantsOf},
	{pattern: "Accounts/*/Conferences/*/Participants/*", kind: participants, parent: conferences, within: participantsOf, instance: true},
	{pattern: "Accounts/*/Recordings", kind: recordings, dress: showRecording(recordingAlone)},
	{pattern: "Accounts/*/Recordings/*", kind: recordings, dress: showRecording(recordingAlone), instance: true},
	recordedIn("Calls", calls, recordingsOfCall, recordingOfCall, false),
	recordedIn("Calls", calls, recordingsOfCall, recordingOfCall, true),
	recordedIn("Conferences", conferences, recordingsOfConference, recordingOfConference, false),
	recordedIn("Conferences", conferences, recordingsOfConference, recordingOfConference, true),
	{pattern: "Accounts/*/Transcriptions", kind: transcriptions},
	{pattern: "Accounts/*/Transcriptions/*", kind: transcriptions, instance: true},
	{pattern: "Accounts/*/Recordings/*/Transcriptions", kind: transcriptions, parent: recordings, within: transcriptionsOf},
	{pattern: "Accounts/*/Recordings/*/Transcriptions/*", kind: transcriptions, parent: recordings, within: transcriptionsOf, instance: true},
	{pattern: "Accounts/*/Messages/*/Media", kind: media, parent: messages, within: mediaOf},
	{pattern: "Accounts/*/Messages/*/Media/*", kind: media, parent: messages, within: mediaOf, instance: true},
}

// recordedIn is the list of recordings of one call or conference, or one of them.
func recordedIn(path string, parent *kind, within func(*world, *sequence, int64) condition, look recordingLook, instance bool) route {
	r := route{
		pattern: "Accounts/*/" + path + "/*/Recordings", kind: recordings, instance: instance,
		parent: parent, within: within, filters: recordingDates, dress: showRecording(look),
	}
	if instance {
		r.pattern += "/*"
	}
	return r
}

// fileRoutes are the paths of what is no JSON.
var fileRoutes = []route{
	audioAt("Accounts/*/Recordings/*", nil, nil),
	audioAt("Accounts/*/Calls/*/Recordings/*", calls, recordingsOfCall),
	audioAt("Accounts/*/Conferences/*/Recordings/*", conferences, recordingsOfConference),
	{
		pattern: "Accounts/*/Messages/*/Media/*", kind: media, parent: messages, within: mediaOf, instance: true,
		serve: (*Server).redirectMedium, methods: "GET, HEAD", endings: []string{""},
	},
}

// audioAt is where a recording can be heard.
func audioAt(pattern string, parent *kind, within func(*world, *sequence, int64) condition) route {
	return route{
		pattern: pattern, kind: recordings, parent: parent, within: within, instance: true,
		serve: (*Server).serveAudio, methods: "GET, HEAD", endings: []string{"", ".wav", ".mp3"},
	}
}

// fileRouteOf finds the route of a path that does not end in .json.
func fileRouteOf(path string) (*route, []string) {
	name, ending := splitEnding(path)
	for i := range fileRoutes {
		r := &fileRoutes[i]
		if sids, ok := r.match(name); ok && slices.Contains(r.endings, ending) {
			return r, sids
		}
	}
	return nil, nil
}
