# Starts a PostgreSQL server in a new folder, and removes both when standard input ends. The test binary holds the other end of that
# pipe, and the kernel closes it however the test binary ends. Standard output receives "ready", or what went wrong.
#
# PRIMARY is the data source name of another server, of which the new one becomes a standby. It may be empty.
# Arguments: the folder, the folder of PostgreSQL's programs, and the server's own arguments.
folder=$1 programs=$2 server=
shift 2
umask 077

remove() {
  trap '' INT TERM HUP
  if [ -n "$server" ]; then
    kill -QUIT "$server" # an immediate stop: nothing is saved
    kill -CONT "$server" # a test may have paused it
    wait "$server"
  fi 2>/dev/null
  # If the server was killed, its processes may write for another moment.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$folder" 2>/dev/null && return
    sleep 0.1
  done
}

fail() {
  cat "$folder/log"
  exit 1
}

trap '' PIPE # the test binary may end before it reads "ready"
mkdir "$folder" || exit 1
trap remove EXIT
trap 'exit 1' INT TERM HUP

if [ -n "$PRIMARY" ]; then
  "$programs/pg_basebackup" -d "$PRIMARY" -D "$folder/data" -R --checkpoint=fast --no-sync </dev/null >"$folder/log" 2>&1 || fail
else
  # ICU sorts texts as most servers do, and not by their bytes.
  "$programs/initdb" -D "$folder/data" --no-sync --auth=trust --username=postgres --encoding=UTF8 \
    --locale=C --locale-provider=icu --icu-locale=en-US </dev/null >"$folder/log" 2>&1 || fail
fi
"$programs/postgres" -D "$folder/data" -k "$folder" "$@" </dev/null >"$folder/log" 2>&1 &
server=$!

waits=0
until grep -q '^ready' "$folder/data/postmaster.pid" 2>/dev/null; do
  kill -0 "$server" 2>/dev/null && [ $waits -lt 6000 ] || fail
  waits=$((waits + 1))
  sleep 0.01
done
echo ready
exec >/dev/null 2>&1
while read -r _; do :; done
