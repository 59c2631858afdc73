// The Monitor API: its paths, beside those of the 2010 API on one port.
package slowapi

// monitorVersion begins its paths.
const monitorVersion = "/v1"

// monitorRoutes are the paths below it. They show the main account.
var monitorRoutes = []route{
	{pattern: "Alerts", kind: alerts, monitor: true, dress: func(r row, here string) { r.(*alert).here = here }},
	{pattern: "Alerts/*", kind: alerts, monitor: true, instance: true,
		dress: func(r row, here string) { a := r.(*alert); a.here, a.whole = here, true }},
	{pattern: "Events", kind: events, monitor: true, dress: eventHere},
	{pattern: "Events/*", kind: events, monitor: true, instance: true, dress: eventHere},
}

func eventHere(r row, here string) { r.(*event).here = here }
