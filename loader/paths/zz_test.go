package paths
import ("testing";"fmt";"time";"wpptrace/loader/image";"wpptrace/loader/cfg")
func TestDev(t *testing.T){
 for _,path:=range []string{"/usr/bin/bash","/usr/bin/python3.11"} {
 im,_:=image.OpenFile(path); p,err:=cfg.Recover(im); if err!=nil {t.Fatal(err)}
 t0:=time.Now(); var mx uint64; extra:=0
 for _,r:=range p.Routines { if r.LeftOut!="" {continue}
  n,err:=Number(r); if err!=nil{t.Fatal(err)}
  mx=max(mx,n.Total); for _,s:=range n.starts { if s.kind==StartExtra {extra++}}
 }
 fmt.Println(path,time.Since(t0),mx,extra)
 }
}
