"""torchrun as Debian packages it (PyTorch 1.13), which does not start under Python 3.11: flag enumerations no longer iterate over their zero.
Std.from_str is replaced for that; the rest is torchrun itself."""

from torch.distributed.elastic.multiprocessing import api


def std_from_str(text):
    if ":" not in text:
        return api.Std(int(text))
    return {
        int(rank): api.Std(int(kind)) for rank, kind in (one.split(":") for one in text.split(","))
    }


api.Std.from_str = staticmethod(std_from_str)

from torch.distributed.run import main  # noqa: E402  it takes the method at import

main()
