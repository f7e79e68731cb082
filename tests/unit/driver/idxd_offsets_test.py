# SPDX-License-Identifier: GPL-2.0
"""The layout of idxd's types that the driver's build takes from BTF: what is listed and not there, or
there with another type or size, stops the build with its name.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
KERNELS = sorted(path.name for path in pathlib.Path("/usr/lib/modules").iterdir())

# What a module finds in its kernel's headers, and idxd's own types.
HEADERS = """
typedef unsigned int u32;
typedef unsigned long long u64;
struct mutex { long owner[4]; };
"""
TYPES = """
enum idxd_state { OFF = -1, ON = 3 };
struct idxd_wq {
    u32 threshold;
    struct mutex wq_lock;
    enum idxd_state state;
    int id;
    struct { int inner; int id; } conf;
    union { void *req; struct { int low; int high; }; };
    u32 bits:3;
    char name[12];
    int (*probe)(struct idxd_wq *wq, u32 how);
    unsigned long *map;
};
"""
FIELDS = """
# comment
store  idxd_wq threshold u32
embed  idxd_wq wq_lock   struct mutex
value  idxd_wq state     enum idxd_state
value  idxd_wq id        int
value  idxd_wq high      int
embed  idxd_wq name      char[]
layout idxd_wq probe     int (*)(struct idxd_wq *, u32)
value  idxd_wq map       long unsigned int *
size   idxd_wq
enum   idxd_state        OFF ON
"""
# Uses the header on the types as they are.
USER = """
#include <assert.h>
#include <stddef.h>
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
%s
int main(void)
{
    %s wq = { .threshold = 7, .state = 3, .id = -5, .high = 9, .name = "wq", .map = (void *)64 };
    struct idxd_wq *p = (struct idxd_wq *)&wq;

    assert(IDXD_SIZE_idxd_wq == sizeof(wq));
    assert(IDXD_OFFSET_idxd_wq_probe == offsetof(%s, probe));
    assert(idxd_wq_threshold(p) == 7 && idxd_wq_id(p) == -5 && idxd_wq_high(p) == 9);
    assert(idxd_wq_state(p) == ON && idxd_wq_map(p) == (unsigned long *)64);
    assert(idxd_wq_wq_lock(p) == &wq.wq_lock && idxd_wq_name(p) == wq.name);
    idxd_wq_set_threshold(p, 8);
    assert(wq.threshold == 8 && OFF == -1);
    return 0;
}
"""


class Offsets(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="idxd_offsets_test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_in(self, *command, status=0, **variables):
        result = subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def btf(self, name, source, base=None):
        (self.folder / f"{name}.c").write_text(source)
        self.run_in("gcc", "-g", "-c", f"{name}.c")
        base = [f"--btf_base={base}.btf"] if base else []
        self.run_in("pahole", *base, f"--btf_encode_detached={name}.btf", f"{name}.o")

    def offsets(self, types=TYPES, fields=FIELDS, headers=HEADERS, status=0):
        """What idxd-offsets says of a kernel whose idxd has these types."""
        self.btf("vmlinux", f"{headers} struct mutex m;")
        self.btf("idxd", f"{headers} {types} struct idxd_wq wq;", "vmlinux")
        (self.folder / "fields").write_text(fields)
        (self.folder / "out.h").write_text("as before")
        said = self.run_in(
            PROJECT / "scripts/idxd-offsets", "9.9", "fields", "out.h", status=status,
            IDXD_KO="idxd.btf", BTF_BASE="vmlinux.btf",
        )  # fmt: skip
        if status:
            self.assertEqual((self.folder / "out.h").read_text(), "as before")
        return said

    def build_user(self, types=TYPES, headers=HEADERS, status=0):
        """Compiles a program that reaches the types through the header alone."""
        # The program's own view of the types has other names.
        own = types.replace("enum idxd_state {", "enum own_state {").replace("OFF", "OWN_OFF")
        own = own.replace("ON =", "OWN_ON =").replace("enum idxd_state state", "int state")
        own = own.replace("struct idxd_wq {", "struct own_wq {")
        prefix = f'{headers} struct idxd_wq; {own}\n#include "out.h"\n'
        (self.folder / "user.c").write_text(USER % (prefix, "struct own_wq", "struct own_wq"))
        return self.run_in("gcc", "-Wall", "-Werror", "-o", "user", "user.c", status=status)

    def test_accessors_reach_the_members_wherever_they_are(self):
        self.assertEqual(self.offsets(), "")
        self.build_user()
        self.run_in("./user")
        first = (self.folder / "out.h").read_text()
        moved = TYPES.replace("    u32 threshold;\n", "").replace(
            "    u32 bits", "    u32 threshold;\n    u32 bits"
        )
        self.assertEqual(self.offsets(moved), "")
        self.build_user(moved)
        self.run_in("./user")
        self.assertNotEqual((self.folder / "out.h").read_text(), first)

    def test_a_missing_member_is_named(self):
        said = self.offsets(TYPES.replace("int id;\n", "int number;\n"), status=1)
        self.assertEqual(said, "idxd-offsets: fields of kernel 9.9: idxd_wq.id is missing\n")
        said = self.offsets(fields="value idxd_wq inner int\n", status=1)
        self.assertIn("idxd_wq.inner is missing", said)

    def test_a_missing_type_or_enumerator_is_named(self):
        said = self.offsets(
            fields="size idxd_group\nvalue idxd_engine id int\nenum idxd_kind NONE\n", status=1
        )
        for what in ("struct idxd_group", "struct idxd_engine", "enum idxd_kind"):
            self.assertIn(f"{what} is missing", said)
        said = self.offsets(TYPES.replace("ON", "UP"), status=1)
        self.assertIn("enum idxd_state has no ON", said)

    def test_a_member_of_another_type_is_named(self):
        for old, new, wanted, found in (
            ("u32 threshold", "u64 threshold", "threshold: ", '"u32", found "u64" (8 bytes'),
            ("char name[12]", "char *name", "name: ", '"char[]", found "char *" (8 bytes'),
            ("int id;\n", "int id:4;\n", "id: ", '"int", found "bit-field"'),
            ("wq, u32 how", "wq, int how", "probe: ", 'found "int (*)(struct idxd_wq *, int)"'),
            ("*map", "map[2]", "map: ", '"long unsigned int *"'),
        ):
            with self.subTest(new):
                said = self.offsets(TYPES.replace(old, new), status=1)
                self.assertIn(f"idxd_wq.{wanted}expected type ", said)
                self.assertIn(found, said)
                self.assertEqual(len(said.splitlines()), 1, said)

    def test_a_member_of_another_size_stops_the_compiler_with_its_name(self):
        larger = HEADERS.replace("owner[4]", "owner[5]")
        self.offsets(headers=larger)
        said = self.build_user(status=1)
        self.assertIn("idxd_wq.wq_lock of idxd has another size", said)

    def test_all_that_is_wrong_is_said_at_once(self):
        types = TYPES.replace("u32 threshold", "int threshold").replace("*map", "*maps")
        said = self.offsets(types, status=1)
        self.assertIn("idxd_wq.threshold: ", said)
        self.assertIn("idxd_wq.map is missing", said)

    def test_a_list_that_cannot_be_meant(self):
        said = self.offsets(fields="size idxd_wq\nvlaue x\n", status=1)
        self.assertIn('line 2: unknown kind "vlaue"', said)
        self.assertIn("lists nothing", self.offsets(fields="# nothing\n", status=1))

    def test_what_has_to_be_installed_is_named(self):
        tools = self.folder / "bin"
        tools.mkdir()
        for tool in "awk bash cat cmp cp mktemp objcopy pahole paste rm sort".split():
            (tools / tool).symlink_to(shutil.which(tool))

        def said(kver, **variables):
            fields = PROJECT / "driver/compat/idxd-fields"
            command = (PROJECT / "scripts/idxd-offsets", kver, fields, "out.h")
            return self.run_in(*command, status=1, PATH=str(tools), **variables)

        self.assertIn("apt-get install linux-image-9.9", said("9.9"))
        self.assertIn("apt-get install xz-utils", said(KERNELS[0]))
        (self.folder / "idxd.ko").touch()
        self.assertIn("apt-get install linux-headers-9.9", said("9.9", IDXD_KO="idxd.ko"))
        (tools / "pahole").unlink()
        self.assertIn("apt-get install pahole", said(KERNELS[0]))
        said = self.run_in(PROJECT / "scripts/kmod-build", "9.9", PROJECT, "out", status=1)
        self.assertIn("apt-get install linux-headers-9.9", said)

    def copy_driver(self):
        for name in ("Kbuild", "driver", "scripts/kmod-build", "scripts/idxd-offsets"):
            to = self.folder / name
            to.parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
            copy(PROJECT / name, to)

    def test_the_drivers_build_stops_on_both_kernels(self):
        self.assertEqual(len(KERNELS), 2)
        self.copy_driver()
        fields = self.folder / "driver/compat/idxd-fields"
        listed = fields.read_text()
        self.assertRegex(listed, r"\nvalue +idxd_device +id +int\n")
        for kver in KERNELS:
            for line, said in (
                ("value idxd_device no_such_member int", "idxd_device.no_such_member is missing"),
                ("value idxd_device id u64", 'idxd_device.id: expected type "u64", found "int"'),
            ):
                with self.subTest(kver, line=line):
                    fields.write_text(listed + line + "\n")
                    out = self.run_in("scripts/kmod-build", kver, ".", f"out-{kver}", status=1)
                    self.assertIn(f"idxd-fields of kernel {kver}: {said}", out)
                    self.assertFalse((self.folder / f"out-{kver}/iaa_crypto.ko").exists())

    def test_a_warning_of_w1_stops_the_drivers_build(self):
        self.copy_driver()
        # Without W=1 the compiler says nothing of it.
        with (self.folder / "driver/main.c").open("a") as source:
            source.write("static const int unwanted = 1;\n")
        for kver in KERNELS:
            with self.subTest(kver):
                out = self.run_in("scripts/kmod-build", kver, ".", f"out-{kver}", status=1)
                self.assertRegex(out, "error: .unwanted. defined but not used")


if __name__ == "__main__":
    unittest.main()
