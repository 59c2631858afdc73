"""Stripe: walks lists with PyPI stripe, there and back, and makes a customer; prints what it was given."""
import json
import os
import sys

import stripe

address, key, does = sys.argv[1:4]
if does == "-":
    does = sys.stdin.read()
# With HTTPS_PROXY it is asked by the lines of docs/reference/proxy.md.
stripe.ca_bundle_path = os.environ.get("SSL_CERT_FILE", stripe.ca_bundle_path)
client = stripe.StripeClient(key, base_addresses={"api": address}, proxy=os.environ.get("HTTPS_PROXY"))


def rows(found):
    return [json.loads(str(row)) for row in found.auto_paging_iter()]


def one(row):
    return [json.loads(str(row))]


def call(client, op):
    """What one call gives at an address: its records, or its error."""
    of = getattr(client.v1, op["kind"])
    options = {k: v for k, v in (("stripe_account", op["account"]), ("stripe_version", op["version"])) if v}
    params = {"expand": op["expand"]} if op["expand"] else {}
    try:
        if op["do"] == "list":
            return json.loads(str(of.list({"limit": op["limit"], **params}, options)))["data"]
        if op["do"] == "update":
            return one(of.update(op["id"], {"name": op["name"]}, options))
        return one(of.retrieve(op["id"], params, options))
    except stripe.StripeError as e:
        return {"status": e.http_status, "message": e.user_message}


if does.startswith("{"):
    of = json.loads(does)
    other = stripe.StripeClient("sk_test_slowapitoken", base_addresses={"api": of["direct"]})
    for op in of["ops"]:
        for one_client in (client, other):
            print(json.dumps(call(one_client, op)))
elif does == "version":
    print(stripe.api_version)
elif does == "create":
    made = client.v1.customers.create({"name": "Lost", "metadata": {"of": "python", "deep": "a=b&c"}})
    print(json.dumps({"made": one(client.v1.customers.retrieve(made.id))}))
elif does == "customers":
    print(json.dumps({"customers": rows(client.v1.customers.list({"limit": 7}))}))
else:
    v1, out = client.v1, {}
    for name in ["customers", "charges", "payment_intents", "refunds", "products", "prices", "subscriptions", "invoices", "events"]:
        out[name] = rows(getattr(v1, name).list({"limit": 7}))
    out["back"] = rows(v1.customers.list({"limit": 4, "ending_before": out["customers"][-1]["id"]}))
    out["mail"] = rows(v1.customers.list({"email": out["customers"][3]["email"]}))
    out["since"] = rows(v1.charges.list({"created": {"gte": out["charges"][9]["created"]}, "limit": 5}))
    out["found"] = rows(v1.customers.search({"query": 'email:"%s"' % out["customers"][3]["email"]}))
    out["canceled"] = rows(v1.subscriptions.list({"status": "all", "limit": 5}))
    charge = out["charges"][0]["id"]
    if does != "outage":
        out["expanded"] = one(v1.charges.retrieve(charge, {"expand": ["customer"]}))
    out["plain"] = one(v1.charges.retrieve(charge))
    out["connected"] = rows(v1.customers.list({"limit": 5}, {"stripe_account": "acct_1SlowapiConnect1"}))
    out["v2"] = rows(client.v2.core.events.list({"object_id": out["customers"][0]["id"], "limit": 2}))
    print(json.dumps(out))
