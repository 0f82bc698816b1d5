"""Serves `benchmarks/checkout.py`: run with another checkout's modules on the path.

A line of standard input asks, and a line of standard output answers. The first names
what is prepared, and each further one asks for a call.
"""

import json
import sys


def main():
    answers, sys.stdout = sys.stdout, sys.stderr

    def answer(found):
        print(json.dumps(found), file=answers, flush=True)

    from benchmarks.calls import Setting, check, prepare
    from common.errors import UserError

    name, setting, batch_size, length = json.loads(sys.stdin.readline())
    try:
        for field in setting.keys() - set(Setting._fields):
            raise UserError(f"expected some of {Setting._fields}, found {field!r}")
        setting = Setting(**setting)
        check([name], setting)
        prepared = prepare(name, setting, batch_size, length)
    except UserError as error:
        return answer({"error": str(error)})
    answer({"parameters": prepared.parameters})
    for _ in sys.stdin:
        prepared.call()
        answer({})
    prepared.close()


if __name__ == "__main__":
    main()
