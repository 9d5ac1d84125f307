#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mixed.sh - maps, lists, patterns, functions and children; and the tools that scripts call.
declare -A map
list=()
for ((i = 0; i < 3000; i++)); do
    map[key$((i * 7919 % 1009))]+="v$i "
    list+=("item $i")
done
echo ${#map[@]} ${#list[@]}
printf '%s\n' "${!map[@]}" | sort | sha256sum
text=$(printf '%s,' "${list[@]}")
echo ${#text} "${text//item/thing}" | cut -c1-80
f() {
    (($1 == 0)) && { echo deep; return; }
    f $(($1 - 1))
}
f 100
for i in {1..30}; do (echo "$i"; exit "$i") | sed 's/^/</'; done
while read -r line; do echo "[$line]"; done < <(seq 50)
shopt -s extglob
v=aaaabbbb
echo "${v##+(a)}"
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"

seq 20000 | awk '{s[$1 % 97] = s[$1 % 97] "x" $1} END {for (i = 0; i < 97; i++) print length(s[i])}'
seq 30000 | sort -R --random-source=/dev/zero | sort -n | md5sum
seq 50000 | gzip -n | md5sum
tar -C /usr/share/doc --sort=name --mtime=@0 --owner=0 --group=0 -cf - bash | xz -T2 | md5sum
seq 100000 | grep -cE '^(1|2)+[3-9]*$'
diff <(seq 3000) <(seq 5 3010) | wc -l
