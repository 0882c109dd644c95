from pathlib import Path

from rlcore import hookimpl


class EpisodeFile:
    """Writes every episode into a file."""

    @hookimpl
    def episode_end(self, episode, trainer):
        with Path("episodes.csv").open("a") as stream:
            stream.write(f"{trainer.progress.frames},{episode.return_},{episode.length}\n")
