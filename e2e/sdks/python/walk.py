"""Walks every list with the provider's PyPI package and prints what it found:
one JSON object, list name -> records, as the package shows them.

    python walk.py BASE ACCOUNT TOKEN '{"call":"CA…","message":"SM…",…}'
"""

import json
import sys
from datetime import date, datetime

from twilio.rest import Client

base, account, token, parents = sys.argv[1:5]
of = json.loads(parents)
client = Client(account, token)
if base:  # else the provider's own hosts are asked
    client.api.base_url = base
    client.monitor.base_url = base

size = {"page_size": 100}
numbers, available = client.incoming_phone_numbers, client.available_phone_numbers
lists = {
    "accounts": lambda: client.api.v2010.accounts.list(**size),
    "calls": lambda: client.calls.list(**size),
    "call_recordings": lambda: client.calls(of["call"]).recordings.list(**size),
    "call_notifications": lambda: client.calls(of["noticed"]).notifications.list(**size),
    "call_events": lambda: client.calls(of["call"]).events.list(**size),
    "messages": lambda: client.messages.list(**size),
    "media": lambda: client.messages(of["message"]).media.list(**size),
    "conferences": lambda: client.conferences.list(**size),
    "participants": lambda: client.conferences(of["conference"]).participants.list(**size),
    "conference_recordings": lambda: client.conferences(of["recorded"]).recordings.list(**size),
    "recordings": lambda: client.recordings.list(**size),
    "recording_transcriptions": lambda: client.recordings(of["transcribed"]).transcriptions.list(**size),
    "transcriptions": lambda: client.transcriptions.list(**size),
    "incoming_phone_numbers": lambda: numbers.list(**size),
    "incoming_local": lambda: numbers.local.list(**size),
    "incoming_mobile": lambda: numbers.mobile.list(**size),
    "incoming_toll_free": lambda: numbers.toll_free.list(**size),
    "available_local": lambda: available("US").local.list(limit=20),
    "available_mobile": lambda: available("GB").mobile.list(limit=20),
    "available_toll_free": lambda: available("US").toll_free.list(limit=20),
    "notifications": lambda: client.notifications.list(**size),
    "queues": lambda: client.queues.list(**size),
    "queue_members": lambda: client.queues(of["queue"]).members.list(**size),
    "applications": lambda: client.applications.list(**size),
    "outgoing_caller_ids": lambda: client.outgoing_caller_ids.list(**size),
    "usage_records": lambda: client.usage.records.list(**size),
    "usage_all_time": lambda: client.usage.records.all_time.list(**size),
    "usage_daily": lambda: client.usage.records.daily.list(category="calls", **size),
    "usage_monthly": lambda: client.usage.records.monthly.list(category="calls", **size),
    "usage_today": lambda: client.usage.records.today.list(**size),
    "usage_last_month": lambda: client.usage.records.last_month.list(**size),
    "keys": lambda: client.keys.list(**size),
    "signing_keys": lambda: client.signing_keys.list(**size),
    "addresses": lambda: client.addresses.list(**size),
    "alerts": lambda: client.monitor.v1.alerts.list(**size),
    "monitor_events": lambda: client.monitor.v1.events.list(**size),
}

# With what to look for, lists are asked for by their filters instead.
by = of.get("filters")
if by:
    since, until, sent = (datetime.fromisoformat(by[name]) for name in ("since", "until", "sent"))
    day = date.fromisoformat(by["day"])
    lists = {
        "accounts_active": lambda: client.api.v2010.accounts.list(status="active", **size),
        "calls_to": lambda: client.calls.list(to=by["to"], page_size=7),
        "calls_from_since": lambda: client.calls.list(from_=by["from"], start_time_after=since, page_size=20),
        "calls_completed": lambda: client.calls.list(status="completed", **size),
        "calls_between": lambda: client.calls.list(start_time_after=since, start_time_before=until, page_size=13),
        "calls_ended": lambda: client.calls.list(end_time_after=since, status="busy"),
        "calls_of_moment": lambda: client.calls.list(start_time=since, page_size=3),
        "calls_of_parent": lambda: client.calls.list(parent_call_sid=by["parent"]),
        "calls_none": lambda: client.calls.list(to="+15005550000"),
        "messages_to": lambda: client.messages.list(to=by["texted"], page_size=5),
        "messages_between": lambda: client.messages.list(date_sent_after=since, date_sent_before=until, page_size=40),
        "messages_of_moment": lambda: client.messages.list(date_sent=sent, page_size=9),
        "conferences_completed": lambda: client.conferences.list(status="completed", date_created_after=day, page_size=4),
        "conferences_named": lambda: client.conferences.list(friendly_name=by["conference"]),
        "recordings_of_call": lambda: client.recordings.list(call_sid=of["call"]),
        "recordings_until": lambda: client.recordings.list(date_created_before=until, page_size=11),
        "participants_unmuted": lambda: client.conferences(of["conference"]).participants.list(muted=False),
        "notifications_errors": lambda: client.notifications.list(log=0, page_size=6),
        "numbers_like": lambda: numbers.list(phone_number=by["digits"]),
        "alerts_errors": lambda: client.monitor.v1.alerts.list(log_level="error", page_size=2),
    }


def shown(record):
    """What the package made of a record, less its own machinery."""
    return {k: v for k, v in vars(record).items() if not k.startswith("_")}


found = {}
for name, walk in lists.items():
    try:
        found[name] = [shown(record) for record in walk()]
    except Exception as err:  # whatever the package raises is the finding
        found[name] = f"{type(err).__name__} {err}"
print(json.dumps(found, default=str))
