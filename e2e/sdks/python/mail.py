"""A mail server, aiosmtpd, for one test.

Usage: mail.py CERTIFICATE KEY USER PASSWORD

It takes mail by STARTTLS from who signs in, answers 550 to the recipient gone@example.com and 451 to the first message for
anybody else. It prints a line of JSON for its port, and one for each recipient it refused and each message that came whole.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

certificate, key, user, password = sys.argv[1:]


def tell(**what):
    print(json.dumps(what), flush=True)


class Handler:
    later = True  # the next message is answered with 451

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address == "gone@example.com":
            tell(refused=address)
            return "550 5.1.1 there is no desk called gone"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        answer, self.later = ("451 4.3.0 come back in a moment" if self.later else "250 kept"), False
        tell(
            answer=answer,
            tls=session.ssl["cipher"][1] if session.ssl else "",
            user=session.auth_data or "",
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            headers=[[name, str(value)] for name, value in message.items()],
            text=message.get_content(),
        )
        return answer


def sign_in(server, session, envelope, mechanism, data):
    ok = data.login == user.encode() and data.password == password.encode()
    return AuthResult(success=ok, auth_data=user if ok else None)


async def main():
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    handler = Handler()
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(handler, tls_context=tls, require_starttls=True, authenticator=sign_in, auth_required=True),
        "127.0.0.1",
        0,
    )
    tell(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
