"""Records to plotly figures. numpy and plotly only, never torch."""
