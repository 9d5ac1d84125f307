#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# body.sh OUTPUT OBJDUMP NM OBJECT - the instructions of jemalloc's malloc() and free() once more,
# as assembler in macros of C, so that gates (gate.h) go on into them without a jump.
#
# These functions are short: they serve what is at hand, and jump to another one for the rest. Each
# instruction is written as its bytes, with the relocations that OBJECT has for it; the jumps to the
# other function lead to the macro's argument. A function that cannot be moved so, as one that has a
# frame or refers to what has no name here, becomes a jump to itself.

set -eu
output=$1 objdump=$2 nm=$3 object=$4

# body MACRO FUNCTION
body() {
    "$nm" -S "$object" | while read -r start bytes _ name; do
        [ "$name" != "$2" ] || "$objdump" -d -r -z -j .text --insn-width=16 \
            --start-address="0x$start" --stop-address=$((0x$start + 0x$bytes)) "$object"
    done | awk -F '\t' -v macro="$1" -v function_name="$2" '
        function refuse(reason) {
            if (why == "")
                why = reason
        }
        function write_line(text) {
            lines = lines "    \"" text "\\n\" \\\n"
        }
        function write_relocation(place, type, symbol) {
            is_near = ""
            if (type == "R_X86_64_PLT32") {
                sub(/[-+]0x[0-9a-f]+$/, "", symbol)
                if (symbol !~ /^ebb_jemalloc_/)
                    refuse("jumps to " symbol)
                if (other != "" && other != symbol)
                    refuse("jumps to " other " and " symbol)
                other = symbol
                symbol = "\" slow \"-4"
            }
            if (symbol !~ /^(ebb_jemalloc_|" slow)/)
                refuse("has to do with " symbol)
            name = symbol
            sub(/[-+][^-+]*$/, "", name)
            write_line(".globl " name) # or clang does not know it
            if (type ~ /TPOFF/)
                write_line(".type " name ",@tls_object")
            write_line(".reloc 7b+" place "-" start "," type "," symbol)
        }
        function write_bytes(text) {
            sub(/ +$/, "", text)
            gsub(/ /, ",0x", text)
            write_line(".byte 0x" text)
        }
        # What has no relocation lies where it does from the instruction alone.
        function look_near() {
            if (is_near != "")
                refuse("has to do with " is_near)
            is_near = ""
        }
        /^[0-9a-f]+ </ { start = "0x" $1; sub(/0x0*/, "0x", start); sub(/ .*/, "", start) }
        /^ +[0-9a-f]+:\t/ {
            if ($3 ~ /%[er]?[sb]p|push|pop|call|leave|\*/)
                refuse("has a frame")
            look_near()
            if ($3 ~ /\(%rip\)|^[^j].*</) {
                is_near = $3
                sub(/^.*# */, "", is_near)
            }
            place = $1
            gsub(/[ :]/, "", place)
            target = $3
            if ($3 ~ /^j/ && sub(/^.*</, "", target) && sub(/>$/, "", target) &&
                target !~ "^" function_name "[+]") {
                count = split($2, each, " ")
                if (count < 5)
                    refuse("has a short jump to " target)
                bytes = each[1] (count > 5 ? " " each[2] : "") " 00 00 00 00"
                write_relocation("0x" place "+" count - 4, "R_X86_64_PLT32", target)
                write_bytes(bytes)
            } else
                write_bytes($2)
        }
        /^\t\t\t[0-9a-f]+: R_/ {
            split($4, each, ": ")
            write_relocation("0x" each[1], each[2], $5)
        }
        END {
            look_near()
            if (lines == "")
                refuse("is not there")
            if (why != "") {
                print "body.sh: " function_name " " why ": gates jump to it" > "/dev/stderr"
                other = function_name
                lines = "    \"jmp \" slow \"\\n\" \\\n"
            }
            print ""
            print "#define " macro "_SLOW \"" other "\""
            print "#define " macro "(slow) \\"
            printf "    \"7:\\n\" \\\n%s    \"\"\n", lines
        }'
}

{
    echo '/* Made by body.sh, which says what it is. */'
    body BODY_MALLOC ebb_jemalloc_malloc
    body BODY_FREE ebb_jemalloc_free
} >"$output"
