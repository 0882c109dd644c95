"""Reads back what MLflow was told, as its own client does."""

import io
import json

from rlcore_plugin_testing.contracts.logger import frames_of


class Tracked:
    """What MLflow's own client says of an experiment, and of its first run."""

    def __init__(self, uri, experiment="rlcore"):
        from mlflow import MlflowClient  # imported late: it takes a second to import, also to collect other tests

        self.client = MlflowClient(uri)
        found = self.client.get_experiment_by_name(experiment)
        self.runs = self.client.search_runs([found.experiment_id], order_by=["start_time"]) if found else []
        self.run = self.runs[0] if self.runs else None

    def rows(self):
        assert len(self.runs) < 2, "a resume made another run"
        return self.rows_of(self.run)

    def rows_of(self, run):
        rows = {}
        for key in run.data.metrics if run else ():
            for metric in self.client.get_metric_history(run.info.run_id, key):
                assert key not in rows.setdefault(metric.step, {}), f"{key} stands twice at {metric.step}"
                rows[metric.step][key] = metric.value
        return sorted(rows.items())

    def files(self, path=""):
        for entry in self.client.list_artifacts(self.run.info.run_id, path or None):
            if entry.is_dir:
                yield from self.files(entry.path)
            else:
                yield entry.path

    def content(self, path, folder):
        folder.mkdir(exist_ok=True)
        with open(self.client.download_artifacts(self.run.info.run_id, path, str(folder)), "rb") as stream:
            return stream.read()

    def media(self, folder):
        media = {}
        for path in self.files():
            kind, _, name = path.partition("/")
            if not name:
                continue
            name, _, file = name.rpartition("/")
            content = self.content(path, folder)
            if kind == "histograms":
                read = json.loads(content)
                assert read["not_finite"] == 2
                shown = read["counts"], read["edges"]
            elif kind == "texts":
                shown = content.decode()
            else:
                frames = frames_of(io.BytesIO(content))
                shown = frames if kind == "videos" else frames[0]
            media[kind.removesuffix("s"), name, int(file.split(".")[0])] = shown
        return media
