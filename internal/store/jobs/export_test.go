package jobs

import "understudy/internal/store/db"

// Statements are those a runner repeats.
var Statements = map[string]*db.Statement{"claim": claimJob, "next": nextJob, "lose": loseLeases, "expire": expireJobs, "beat": beatJob,
	"mark": markJob, "end": endJob, "live": selectLiveJob, "cancel": cancelJob, "job": selectJob}
