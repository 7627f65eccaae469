# pipelines, substitutions, background jobs, traps and exit statuses
seq 1 2000 | sort -rn | head -3
echo "$(printf 'a\nb\n' | wc -l) lines"
(sleep 0.1; echo late) & wait $!
sh -c 'kill -TERM $$'; echo "status $?"
trap 'echo trapped' USR1; kill -USR1 $$
false | true; echo $?
exit 37
