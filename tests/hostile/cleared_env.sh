# programs that are given an empty environment: not followed, and not harmed
env -i /bin/sh -c 'echo clean; env | grep -c MLPROF; exit 4'
echo $?
