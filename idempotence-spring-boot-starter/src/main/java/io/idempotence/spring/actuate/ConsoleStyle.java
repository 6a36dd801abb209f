package io.idempotence.spring.actuate;

import io.idempotence.spring.internal.Sha256;

/** The style of the console, in the colours that the browser prefers, and the policy that allows nothing but this style. */
final class ConsoleStyle {
    static final String CSS = """
            :root{color-scheme:light dark;--page:#f6f5f2;--card:#fff;--text:#1d2327;--soft:#59626a;--line:#dfdcd5;--link:#0b5a8a;--on-link:#fff;--tint:#eef4f8;
            --abandoned:#b3261e;--unknown:#96560a;--in-progress:#0b5a8a;--completed:#2b6a39;--released:#59626a;--shadow:0 1px 2px rgb(0 0 0/.05),0 8px 24px -18px rgb(0 0 0/.3)}
            @media (prefers-color-scheme:dark){:root{--page:#14181b;--card:#1c2226;--text:#e8e6e1;--soft:#a9b0b5;--line:#353e44;--link:#7cc0ea;--on-link:#0d1b24;--tint:#22303a;
            --abandoned:#ff8f86;--unknown:#e3a650;--in-progress:#7cc0ea;--completed:#86cb92;--released:#a9b0b5;--shadow:0 0 #0000}}
            *{box-sizing:border-box}
            html{-webkit-text-size-adjust:100%}
            body{margin:0;background:var(--page);color:var(--text);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
            .in{max-width:66rem;margin:0 auto;padding:0 1.5rem}
            header{background:var(--card);border-bottom:1px solid var(--line)}
            header .in{display:flex;align-items:baseline;justify-content:space-between;gap:1rem;flex-wrap:wrap;padding-block:.9rem}
            .brand{font-weight:700;font-size:1.125rem;color:var(--text);text-decoration:none;letter-spacing:-.01em}
            .ns{color:var(--soft)}.ns b{color:var(--text);font-weight:600}
            main{padding:1.75rem 0 4rem;outline:0}
            h1{font-size:1.625rem;line-height:1.25;letter-spacing:-.015em;margin:1.75rem 0 .35rem}
            h2{font-size:1.0625rem;margin:2.25rem 0 .75rem}
            .lead{margin:0 0 1.25rem;color:var(--soft);max-width:46rem}
            .soft{color:var(--soft)}
            a{color:var(--link)}
            a:focus-visible,button:focus-visible,input:focus-visible,summary:focus-visible,.scroll:focus-visible,.note:focus-visible{outline:3px solid var(--link);outline-offset:2px}
            .skip{position:absolute;left:-999rem}.skip:focus{left:1rem;top:.75rem;background:var(--card);padding:.4rem .8rem;z-index:1}
            .sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
            .card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;box-shadow:var(--shadow);padding:1.25rem 1.5rem}
            .empty{color:var(--soft);margin:0}
            .row{display:flex;gap:1rem;align-items:flex-end;flex-wrap:wrap}.grow{flex:1 1 14rem}
            label{font-weight:600;font-size:.9375rem}
            input:not([type=radio],[type=checkbox]){display:block;width:100%;margin-top:.3rem;padding:.55rem .7rem;font:inherit;font-size:1rem;font-weight:400;color:inherit;background:var(--page);border:1px solid #868d93;border-radius:.375rem}
            .search input[name=id]{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
            button{padding:.55rem 1.25rem;font:inherit;font-weight:600;border:1px solid var(--link);border-radius:.375rem;background:var(--link);color:var(--on-link);cursor:pointer}
            button:hover{filter:brightness(1.08)}
            details{margin-top:.9rem}summary{cursor:pointer;color:var(--soft);width:fit-content}details .row{margin-top:.75rem}
            .tiles{list-style:none;margin:0;padding:0;display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem}
            .tile{display:block;padding:.9rem 1.1rem;background:linear-gradient(var(--c),var(--c)) 0 0/100% 3px no-repeat var(--card);border:1px solid var(--line);border-radius:.5rem;box-shadow:var(--shadow);text-decoration:none;color:var(--soft)}
            .tile b{display:block;font-size:1.75rem;line-height:1.3;font-weight:650;color:var(--text);letter-spacing:-.02em}
            .tile:hover{background-color:var(--tint)}.tile:hover span{text-decoration:underline}
            .abandoned{--c:var(--abandoned)}.unknown{--c:var(--unknown)}.in-progress{--c:var(--in-progress)}.completed{--c:var(--completed)}.released{--c:var(--released)}
            .state{display:inline-flex;align-items:center;gap:.45rem;color:var(--c);font-weight:600;white-space:nowrap}
            .state::before{content:"";width:.55rem;height:.55rem;border-radius:50%;background:currentcolor}
            .state.abandoned::before{border-radius:0;transform:rotate(45deg)}.state.unknown::before{border-radius:0}
            .scroll{padding:0;overflow-x:auto;position:relative}
            table{border-collapse:collapse;width:100%}
            th,td{padding:.7rem 1rem;text-align:left;vertical-align:baseline;white-space:nowrap}
            thead th{font-size:.8125rem;font-weight:600;color:var(--soft);border-bottom:1px solid var(--line)}
            tbody tr+tr>*{border-top:1px solid var(--line)}
            tbody tr:hover{background:var(--tint)}
            tbody th{font-weight:400}th:first-child,td:first-child{padding-left:1.5rem}.act{text-align:right;padding-right:1.5rem}
            .act a{font-weight:600}
            code{font:.9375em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}.key{overflow-wrap:anywhere}
            .call{display:block;color:var(--soft);font-size:.875rem;max-width:24rem;overflow:hidden;text-overflow:ellipsis}
            .urgent{color:var(--abandoned)}
            dl{display:grid;grid-template-columns:max-content 1fr;gap:.55rem 1.75rem;margin:0}dt{color:var(--soft)}dd{margin:0}
            .more{margin:1rem 0 0}section.card+section.card{margin-top:1rem}
            .ask{margin-top:1rem;background:linear-gradient(var(--unknown),var(--unknown)) 0 0/100% 4px no-repeat var(--card)}.ask h2{margin:0 0 .5rem}
            .question{font-size:1.1875rem;line-height:1.45;margin:0 0 .75rem;max-width:44rem;text-wrap:balance}
            .questions{margin:0 0 1rem}.questions dt{color:var(--text);font-weight:600}
            fieldset{border:0;margin:1.25rem 0 0;padding:0;display:grid;grid-template-columns:repeat(auto-fit,minmax(16rem,1fr));gap:.75rem}
            legend{font-weight:600;padding:0;margin-bottom:.5rem}
            .choice{display:flex;gap:.75rem;align-items:flex-start;padding:.9rem 1rem;border:1px solid #868d93;border-radius:.5rem;cursor:pointer;font-weight:400}
            .choice:hover{background:var(--tint)}.choice:has(:checked){border-color:var(--link);box-shadow:inset 0 0 0 1px var(--link);background:var(--tint)}
            .choice b{display:block}.choice small{font-size:.9375rem;color:var(--soft)}
            input[type=radio],input[type=checkbox]{width:1.1rem;height:1.1rem;margin:.2rem 0 0;accent-color:var(--link);flex:none}
            .check{display:flex;gap:.6rem;margin-top:1.25rem;font-weight:400;font-size:1rem}
            .buttons{display:flex;gap:1.25rem;align-items:center;margin:1.25rem 0 0}
            .note{border:1px solid var(--line);border-left:4px solid var(--soft);border-radius:.375rem;background:var(--card);padding:.8rem 1.1rem;margin:1.25rem 0}
            .note.good{border-left-color:var(--completed)}.note.bad{border-left-color:var(--abandoned)}
            .split{display:flex;justify-content:space-between;align-items:baseline;flex-wrap:wrap;gap:0 1rem;margin:2.25rem 0 .75rem}.split h2{margin:0}
            nav{display:flex;gap:1rem}nav a[aria-current]{color:var(--text);font-weight:600;text-decoration:none}
            figure{margin:0 0 1.5rem}figcaption{display:grid;grid-template-columns:max-content 1fr max-content;gap:0 .6rem;margin-bottom:.4rem}
            .total{font-weight:650}
            figure.replayed{--c:var(--in-progress)}figure.refused{--c:var(--released)}
            svg{display:block;width:100%;height:3.5rem;fill:var(--c)}svg path{stroke:var(--line);vector-effect:non-scaling-stroke}
            .axis{display:flex;justify-content:space-between;color:var(--soft);font-size:.875rem;margin-top:-.9rem}
            @media (max-width:40rem){.in{padding:0 1rem}figcaption .soft{grid-row:2;grid-column:1/-1}.total{grid-column:3}dl{grid-template-columns:1fr;gap:.1rem}dd{margin-bottom:.6rem}}
            """;

    /** Without scripts, frames or anything of another origin. */
    static final String POLICY = "default-src 'none'; style-src 'sha256-" + Sha256.base64(CSS)
            + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

    private ConsoleStyle() {}
}
