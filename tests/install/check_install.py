#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_install.py MESON BUILD SOURCE - an installed ebb is one that programs can be built with.

Installs the build into a scratch folder and builds ten-line programs there with nothing but
pkg-config: against the shared library, as C and as C++, wholly static, and with only ebb static.
Then configures ebb as a project around it may, and looks at what would be built and installed; of
such cases parts.py draws.
TAP; what a user's machine may lack (a C++ compiler, say) is skipped and named.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.with_name("kit")))
sys.dont_write_bytecode = True

import parts  # noqa: E402


class Failure(Exception):
    """A step did not do what it should; the text says what happened instead."""


class Skip(Exception):
    """The machine lacks something."""


def run(command, **environment):
    result = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                            env={**os.environ, **environment})
    if result.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise Failure(f"{words}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Installation:
    def __init__(self, scratch, meson, build, source):
        self.scratch, self.root = scratch, scratch / "root"
        self.meson, self.build, self.source = meson, pathlib.Path(build), pathlib.Path(source)
        self.install(self.root)
        self.library = self.one("libebb.so")
        self.pc = self.one("ebb.pc")
        self.tool = next(self.root.rglob("bin/ebb"), None)

    def install(self, root, *options):
        run([self.meson, "install", "-C", self.build, "--no-rebuild", "--destdir", root, *options])

    def one(self, name):
        found = list(self.root.rglob(name))
        if len(found) != 1:
            raise Failure(f"{name} is installed {len(found)} times")
        return found[0]

    def pkg_config(self, *words, package="ebb"):
        if not shutil.which("pkg-config"):
            raise Skip("pkg-config is missing")
        return run(["pkg-config", *words, package], PKG_CONFIG_SYSROOT_DIR=str(self.root),
                   PKG_CONFIG_PATH=str(self.pc.parent), PKG_CONFIG_LIBDIR="").split()

    def build_and_run(self, compiler, user, flags, *options):
        program = self.scratch / "user"
        run([compiler, *options, "-Wall", "-Wextra", "-Werror", HERE / user, "-o", program, *flags])
        said = run([program], LD_LIBRARY_PATH=str(self.library.parent))
        version = self.pkg_config("--modversion")[0]
        if said != f"ebb {version}\n":
            raise Failure(f"{user} printed {said!r}")
        return program


def all_headers_are_installed(ebb):
    ours = {file.name for file in (ebb.source / "include" / "ebb").glob("*.h")}
    theirs = {file.name for file in ebb.root.rglob("include/ebb/*.h")}
    if ours != theirs:
        raise Failure(f"{sorted(ours ^ theirs)} differ")


def nothing_else_is_installed(ebb):
    names = {file.name for file in ebb.root.rglob("*") if not file.is_dir()}
    version = ebb.pkg_config("--modversion")[0]
    ours = {"libebb.so", "libebb.so.0", f"libebb.so.{version}", "libebb.a", "ebb.pc"}
    if "libebb-malloc.so" in names:
        for library in ("libebb-malloc.so", "libebb-malloc-hardened.so"):
            ours |= {name.replace("libebb.so", library) for name in ours}
        ours.add("ebb-malloc.pc")
    package = {file.name for file in ebb.root.rglob("*-packages/ebb/*")}
    package |= {file.name for file in ebb.root.rglob("nodejs/ebb-scope/*")}
    if ebb.tool:  # built with the benchmarks
        ours |= {"ebb", "ebb.1", "libebb-record.so", "sitecustomize.py", "churn", "churn-replay",
                 "ebb-heap.so", "budget"}
        package |= {file.name for file in ebb.root.rglob("share/ebb/report/*")}
    extra = {name for name in names - ours - package if not name.endswith(".h")}
    if extra or ours - names:
        raise Failure(f"{sorted(extra)} too much, {sorted(ours - names)} too few")


def c_program_links_the_shared_library(ebb):
    program = ebb.build_and_run("cc", "user.c", ebb.pkg_config("--cflags", "--libs"), "-std=c11")
    if "libebb.so.0" not in run(["readelf", "-d", program]):
        raise Failure("the program does not need libebb.so.0")


def shared_users_need_no_jemalloc(ebb):
    flags = ebb.pkg_config("--libs")
    if any("jemalloc" in flag for flag in flags):
        raise Failure(" ".join(flags))


def c_program_links_libebb_malloc_instead(ebb):
    if not list(ebb.root.rglob("libebb-malloc.so")):
        raise Skip("libebb-malloc was not built")
    flags = ebb.pkg_config("--cflags", "--libs", package="ebb-malloc")
    needed = run(["readelf", "-d", ebb.build_and_run("cc", "user.c", flags, "-std=c11")])
    if "libebb-malloc.so.0" not in needed or "libebb.so" in needed:
        raise Failure(needed)


def cxx_program_links_the_shared_library(ebb):
    if not shutil.which("c++"):
        raise Skip("no C++ compiler")
    ebb.build_and_run("c++", "user.cc", ebb.pkg_config("--cflags", "--libs"), "-std=c++17")


def static_flags(ebb):
    """What pkg-config says. If that names jemalloc, its archive must be at hand."""
    flags = ebb.pkg_config("--static", "--cflags", "--libs")
    archive = run(["cc", "-print-file-name=libjemalloc.a"]).strip()
    if "-ljemalloc" in flags and not pathlib.Path(archive).is_absolute():
        raise Skip("libjemalloc.a (libjemalloc-dev) is missing")
    return flags


def what_libebb_needs_is_named(ebb):
    """With glibc before 2.34 dlsym() and threads are libraries of their own."""
    missing = {"-lpthread", "-ldl"} - set(ebb.pkg_config("--static", "--libs"))
    if missing:
        raise Failure(f"{sorted(missing)} are not")


def c_program_links_everything_statically(ebb):
    program = ebb.build_and_run("cc", "user.c", static_flags(ebb), "-std=c11", "-static",
                                "-Wl,--fatal-warnings")
    if "(NEEDED)" in run(["readelf", "-d", program]):
        raise Failure("the program needs shared libraries")


def with_ebb_static(ebb, user="user.c", *others):
    """A program with libebb.a inside and all else shared: the archive is named by its file."""
    flags = ["-l:libebb.a" if flag == "-lebb" else flag for flag in static_flags(ebb)]
    return ebb.build_and_run("cc", user, [*flags, *others], "-std=c11")


def c_program_links_only_ebb_statically(ebb):
    if "libebb" in run(["readelf", "-d", with_ebb_static(ebb)]):
        raise Failure("the program needs libebb.so")


def two_copies_in_one_process_keep_apart(ebb):
    library = ebb.scratch / "libuser.so"
    run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", HERE / "shared.c", "-o", library,
         *ebb.pkg_config("--cflags", "--libs")])
    with_ebb_static(ebb, "both.c", library, f"-Wl,-rpath,{ebb.scratch}",
                    f"-Wl,-rpath-link,{ebb.library.parent}")


def names_of(archive):
    lines = run(["nm", "--defined-only", "--extern-only", "--format=posix", archive]).splitlines()
    return {line.split()[0] for line in lines if len(line.split()) > 1}


def names_in_the_archive_begin_with_ebb(ebb):
    names = names_of(next(ebb.root.rglob("libebb.a")))
    others = sorted(name for name in names if not name.startswith("ebb_"))
    if others or "ebb_region_open" not in names:
        raise Failure(f"{len(others)} of {len(names)} do not: {others[:10]}")


def parts_of_an_installation_have_the_same_archive(ebb):
    ebb.install(ebb.scratch / "part", "--tags", "devel")
    whole, part = (next(root.rglob("libebb.a")) for root in (ebb.root, ebb.scratch / "part"))
    if part.read_bytes() != whole.read_bytes():
        raise Failure("they differ")


def archive_of(ebb, compiler, *options):
    source, made, archive = (ebb.scratch / name for name in ("two.c", "two.o", "two.a"))
    source.write_text("int ebb_open(void) { return 1; }\nint os(void) { return 2; }\n")
    run([compiler, "-c", *options, source, "-o", made])
    archive.unlink(missing_ok=True)
    try:
        run([ebb.source / "runtime" / "archive.sh", archive, "ar", "nm", "objcopy", made])
    except Failure:
        if archive.exists():
            raise
    return archive


def objects_whose_names_cannot_be_changed_make_no_archive(ebb):
    if names_of(archive_of(ebb, "cc")) != {"ebb_open", "ebb__os"}:
        raise Failure("there are others")
    for compiler in filter(shutil.which, ("gcc", "clang")):
        if archive_of(ebb, compiler, "-flto").exists():
            raise Failure(f"{compiler} -flto: there is one")


def a_static_users_names_are_its_own(ebb):
    with_ebb_static(ebb, "namesake.c")


def static_ebb_brings_no_malloc_along(ebb):
    program = with_ebb_static(ebb)
    needed = [line for line in run(["readelf", "-d", program]).splitlines() if "jemalloc" in line]
    defined = [line for line in run(["nm", "--defined-only", "--extern-only", program]).splitlines()
               if line.split()[-1] in ("malloc", "free", "calloc", "realloc")]
    if needed or defined:
        raise Failure("\n".join(needed + defined))


def python_imports_the_package(ebb):
    found = list(ebb.root.rglob("*-packages/ebb"))
    if not found:
        raise Skip("the Python package was not built")
    ours = {file.name for file in (ebb.source / "python" / "ebb").iterdir()
            if file.suffix in (".py", ".pyi", ".typed")}
    theirs = {file.name for file in found[0].iterdir()}
    if theirs - {"_ebb.abi3.so", "_torch_hook.abi3.so"} != ours:
        raise Failure(f"{sorted(ours ^ theirs)} differ")
    said = run(["/usr/bin/python3", "-B", "-c", "import ebb; print(ebb.__file__, ebb.Pool().kind)"],
               PYTHONPATH=str(found[0].parent), LD_LIBRARY_PATH=str(ebb.library.parent))
    if said != f"{found[0]}/__init__.py host\n":
        raise Failure(f"it printed {said!r}")


def node_requires_the_package(ebb):
    found = list(ebb.root.rglob("nodejs/ebb-scope/index.js"))
    if not found or not shutil.which("node"):
        raise Skip("no node, or its package was not built")
    ours = {"ebb_scope.node", "index.js", "package.json"}
    theirs = {file.name for file in found[0].parent.iterdir()}
    if theirs != ours:
        raise Failure(f"{sorted(ours ^ theirs)} differ")
    said = run(["node", "-e", "console.log(new (require('ebb-scope').Site)('x').run(() => 7))"],
               NODE_PATH=str(found[0].parents[1]), LD_LIBRARY_PATH=str(ebb.library.parent))
    if said != "7\n":
        raise Failure(f"it printed {said!r}")


def the_tool_finds_its_parts(ebb):
    if not ebb.tool:
        raise Skip("built without -Dbench=true")
    use_tool(ebb, ebb.tool)


def use_tool(ebb, tool):
    trace, page = ebb.scratch / "slow.trace.gz", ebb.scratch / "page.html"
    slow = "import time\nfor _ in range(20): bytes(100000), time.sleep(0.005)"
    run([tool, "record", "--every", "1", "-o", trace, "--", "/usr/bin/python3", "-c", slow])
    run([tool, "advise", trace])
    run([tool, "replay", "--quick", "--rounds", "1", "--allocators", "glibc", trace])
    run([tool, "budget", "--bytes", "1000000000000", trace])
    run([tool, "report", "--no-replay", "--html", page, trace])
    if "</html>" not in page.read_text():
        raise Failure("the page is cut")


def tool_in(ebb, bindir):
    """The tool, built for that folder and put there; its other parts are those of the build."""
    build, tool = ebb.scratch / "of_tool", pathlib.Path("bench/tool/ebb")
    options = ["-Doptimization=0", f"-Dprefix={ebb.scratch / 'prefix'}", f"-Dbindir={bindir}"]
    if build.exists():
        run([ebb.meson, "configure", build, *options])
    else:
        run([ebb.meson, "setup", build, ebb.source, "-Dtests=false", "-Dbench=true",
             "-Dpython=disabled", "-Dmalloc=disabled", *options])
    run(["ninja", "-C", build, tool])
    places = json.loads(run([ebb.meson, "introspect", "--installed", build]))
    for built, place in places.items():
        part = pathlib.Path(built)
        if build / "bench" in part.parents:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            part = part.relative_to(build)
            shutil.copy((build if part == tool else ebb.build) / part, place)
    return places[str(build / tool)]


def the_tool_finds_its_parts_from_any_folder(ebb):
    if not ebb.tool:
        raise Skip("built without -Dbench=true")
    for bindir in ("tools/bin", ebb.scratch / "beside"):
        use_tool(ebb, tool_in(ebb, bindir))


def options_of_a_project_around_it_leave_the_library_as_it_is(ebb):
    build, elsewhere = ebb.scratch / "parent", ebb.scratch / "elsewhere"
    run([ebb.meson, "setup", build, ebb.source, "-Dtests=false", "-Db_lto=true", "-Dunity=on",
         "-Db_staticpic=false", "-Ddefault_library=static", f"-Dlibdir={elsewhere}"])
    commands = json.loads((build / "compile_commands.json").read_text())
    wrong = [one["file"] for one in commands if "/libebb.so" in one["output"] and
             ("unity" in one["file"] or "-fno-lto" not in one["command"].partition("-flto")[2])]
    if wrong:
        raise Failure(f"compiled otherwise: {wrong[:10]}")
    installed = json.loads(run([ebb.meson, "introspect", "--installed", build]))
    if str(elsewhere / "libebb.a") not in installed.values():
        raise Failure("the archive goes where other libraries do not go")
    extension = "python/ebb/_ebb.abi3.so"
    if any(name.endswith(extension) for name in installed) and \
            "libebb.so" not in run(["ninja", "-C", build, "-t", "query", extension]):
        raise Failure("the Python package has a libebb of its own")


CASES = [all_headers_are_installed, nothing_else_is_installed, c_program_links_the_shared_library,
         shared_users_need_no_jemalloc, c_program_links_libebb_malloc_instead,
         cxx_program_links_the_shared_library, what_libebb_needs_is_named,
         c_program_links_everything_statically, c_program_links_only_ebb_statically,
         two_copies_in_one_process_keep_apart, names_in_the_archive_begin_with_ebb,
         parts_of_an_installation_have_the_same_archive,
         objects_whose_names_cannot_be_changed_make_no_archive,
         a_static_users_names_are_its_own, static_ebb_brings_no_malloc_along,
         python_imports_the_package, node_requires_the_package, the_tool_finds_its_parts]
SELDOM = [options_of_a_project_around_it_leave_the_library_as_it_is,
          the_tool_finds_its_parts_from_any_folder]  # most of the time was theirs


def verdict(case, ebb):
    """(ok or not, what to add to the name, what to say below)."""
    try:
        case(ebb)
    except Skip as reason:
        return True, f" # SKIP {reason}", ""
    except Failure as reason:
        return False, "", str(reason)
    return True, "", ""


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check_install.py MESON BUILD SOURCE")
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        ebb = Installation(pathlib.Path(scratch), *sys.argv[1:])
        cases = CASES + parts.drawn(SELDOM)
        print(f"1..{len(cases)}")
        for number, case in enumerate(cases, 1):
            good, suffix, text = verdict(case, ebb)
            failed |= not good
            print(f"{'ok' if good else 'not ok'} {number} - {case.__name__}{suffix}")
            for line in text.splitlines():
                print(f"# {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
